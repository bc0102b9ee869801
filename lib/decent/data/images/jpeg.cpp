// JPEG through libjpeg-turbo. Its errors leave it by longjmp: between setjmp and the end of
// decoding there is nothing with a destructor.

// jpeglib.h uses what these two declare, and jerror.h what jpeglib.h does.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "decent/data/images/decoders.h"
#include "decent/data/images/exif.h"

namespace decent {
namespace {

// The most passes over the image that a progressive file may need. Encoders make about ten; files
// with thousands exist only to keep a program busy.
constexpr int kMostScans = 500;

struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg knows the address of this
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

Failure& failure_of(j_common_ptr jpeg) { return *reinterpret_cast<Failure*>(jpeg->err); }

[[noreturn]] void leave(j_common_ptr jpeg) {
  jpeg->err->format_message(jpeg, failure_of(jpeg).text);
  std::longjmp(failure_of(jpeg).back, 1);
}

// Takes warnings about lost parts of the image, which libjpeg would fill with gray.
void warn(j_common_ptr jpeg, int level) {
  constexpr std::array kLost = {JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF,
                                JWRN_MUST_RESYNC, JWRN_ARITH_BAD_CODE};
  const bool lost = std::find(kLost.begin(), kLost.end(), jpeg->err->msg_code) != kLost.end();
  if (level < 0 && lost) leave(jpeg);
}

void count_scans(j_common_ptr jpeg) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decoder->input_scan_number <= kMostScans) return;
  std::snprintf(failure_of(jpeg).text, JMSG_LENGTH_MAX, "more than %d scans", kMostScans);
  std::longjmp(failure_of(jpeg).back, 1);
}

// The EXIF data is in the first APP1 marker that begins like this.
int orientation_of(const jpeg_decompress_struct& jpeg) {
  constexpr std::size_t kExifHeaderBytes = 6;
  for (auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->data_length < kExifHeaderBytes || std::memcmp(marker->data, "Exif\0", 5) != 0)
      continue;
    return exif_orientation(
        {reinterpret_cast<const std::byte*>(marker->data), marker->data_length});
  }
  return kNotSaid;
}

// Pillow takes all four-channel files for Adobe's, which are inverted.
void cmyk_to_rgb(const std::uint8_t* row, std::size_t width, std::uint8_t* out) {
  for (std::size_t i = 0; i < width; ++i, row += 4) {
    const int black = row[3];
    for (std::size_t c = 0; c < 3; ++c) {
      const int product = (255 - row[c]) * black + 128;
      *out++ =
          static_cast<std::uint8_t>(std::clamp(black - ((product >> 8) + product) / 256, 0, 255));
    }
  }
}

class JpegDecoder {
 public:
  explicit JpegDecoder(const ImageFile& file) : file_(file) {
    jpeg_.err = jpeg_std_error(&failure_.manager);
    failure_.manager.error_exit = leave;
    failure_.manager.emit_message = warn;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  void decode(Pixels& out, int& orientation) {
    if (!read_header()) fail();
    orientation = orientation_of(jpeg_);
    const bool is_gray = jpeg_.jpeg_color_space == JCS_GRAYSCALE;
    file_.begin(out, jpeg_.image_height, jpeg_.image_width, is_gray ? 1 : 3);
    if (jpeg_.num_components == 4) row_.resize(static_cast<std::size_t>(jpeg_.image_width) * 4);
    next_ = out.bytes.data();
    if (!read_rows(out.channels)) fail();
  }

 private:
  [[noreturn]] void fail() const {
    file_.wrong(std::string("a damaged JPEG image: ") + failure_.text);
  }

  bool read_header() {
    if (setjmp(failure_.back) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    progress_.progress_monitor = count_scans;
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file_.bytes.data()),
                 file_.bytes.size());
    jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  bool read_rows(std::int64_t channels) {
    if (setjmp(failure_.back) != 0) return false;
    const bool cmyk = jpeg_.num_components == 4;
    jpeg_.out_color_space = cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = cmyk ? row_.data() : next_;
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (cmyk) cmyk_to_rgb(row_.data(), jpeg_.image_width, next_);
      next_ += static_cast<std::size_t>(jpeg_.image_width) * static_cast<std::size_t>(channels);
    }
    return true;
  }

  const ImageFile& file_;
  Failure failure_ = {};
  jpeg_progress_mgr progress_ = {};
  jpeg_decompress_struct jpeg_ = {};
  std::vector<std::uint8_t> row_;  // of four channels
  std::uint8_t* next_ = nullptr;   // where the next row goes; a member, because longjmp keeps those
};

}  // namespace

void decode_jpeg(const ImageFile& file, Pixels& out, int& orientation) {
  JpegDecoder(file).decode(out, orientation);
}

}  // namespace decent
