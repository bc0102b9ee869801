// PNG through libpng. Its errors leave it by longjmp: between setjmp and the end of decoding there
// is nothing with a destructor.

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "decent/data/images/decoders.h"
#include "decent/data/images/exif.h"

namespace decent {
namespace {

constexpr std::size_t kSignature = 8;

std::size_t big_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::size_t>(bytes[at + i]);
  return value;
}

// Looks for the chunk eXIf, which may come after the pixels, where libpng would have to read the
// whole file first.
int orientation_of(std::span<const std::byte> file) {
  constexpr std::size_t kChunkOverhead = 12;  // a chunk's length, name and checksum
  std::size_t at = kSignature;
  while (file.size() >= at + kChunkOverhead) {
    const std::size_t length = big_endian(file, at);
    if (length > file.size() - at - kChunkOverhead) break;
    if (std::memcmp(file.data() + at + 4, "eXIf", 4) == 0)
      return exif_orientation(file.subspan(at + 8, length));
    at += length + kChunkOverhead;
  }
  return kNotSaid;
}

enum class PngValues {
  colors,  // as they are shown
  stored,  // the numbers in the file, of one channel of at most 8 bits
};

class PngDecoder {
 public:
  PngDecoder(const ImageFile& file, PngValues values)
      : file_(file), values_(values), left_(file.bytes) {}
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  void decode(Pixels& out) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave,
                                  [](png_structp, png_const_charp) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) file_.wrong("there is no memory to decode it");
    if (!read_header()) fail();
    if (values_ == PngValues::stored) check_one_channel();
    const auto width = static_cast<std::int64_t>(png_get_image_width(png_, info_));
    const auto height = static_cast<std::int64_t>(png_get_image_height(png_, info_));
    check_size(height, width);
    file_.begin(out, height, width, png_get_channels(png_, info_));
    const std::size_t row = png_get_rowbytes(png_, info_);
    rows_.resize(static_cast<std::size_t>(height));
    for (std::size_t y = 0; y < rows_.size(); ++y) rows_[y] = out.bytes.data() + y * row;
    if (!read_rows()) fail();
  }

 private:
  [[noreturn]] void fail() const { file_.wrong(std::string("a damaged PNG image: ") + text_); }

  static void leave(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self->text_, sizeof self->text_, "%s", message);
    std::longjmp(self->back_, 1);
  }

  static void read(png_structp png, png_bytep out, std::size_t length) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (length > self->left_.size()) png_error(png, "the file ends too early");
    std::memcpy(out, self->left_.data(), length);
    self->left_ = self->left_.subspan(length);
  }

  // Deflate packs at most 1032 bytes into one. A file that promises more pixels than that is not
  // whole.
  void check_size(std::int64_t height, std::int64_t width) {
    constexpr std::int64_t kMostInflation = 1032;
    const std::int64_t bits = static_cast<std::int64_t>(depth_) * width;
    const auto bytes = static_cast<std::int64_t>(file_.bytes.size());
    if ((bits + 7) / 8 <= bytes * kMostInflation / height) return;
    file_.wrong("an image of " + std::to_string(width) + " by " + std::to_string(height) +
                " pixels cannot be in a file of " + std::to_string(bytes) + " bytes");
  }

  void check_one_channel() const {
    const bool one_channel = type_ == PNG_COLOR_TYPE_GRAY || type_ == PNG_COLOR_TYPE_PALETTE;
    if (one_channel && depth_ <= 8) return;
    const std::string kind = one_channel                          ? "gray of 16 bits"
                             : type_ == PNG_COLOR_TYPE_GRAY_ALPHA ? "gray with alpha"
                             : type_ == PNG_COLOR_TYPE_RGB        ? "RGB"
                                                                  : "RGBA";
    file_.wrong(
        "not a mask: expected one channel of at most 8 bits, gray or a palette, whose values " +
        std::string("are classes; it is ") + kind);
  }

  bool read_header() {
    if (setjmp(back_) != 0) return false;
    png_set_read_fn(png_, this, read);
    // Skips chunks that only describe the image. libpng would allocate any length that one of them,
    // eXIf, has in the file: png_set_chunk_malloc_max does not limit that.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_user_limits(png_, 0x7FFFFFFF, 0x7FFFFFFF);  // check_size and begin() limit more
    png_read_info(png_, info_);
    type_ = png_get_color_type(png_, info_);
    depth_ = png_get_bit_depth(png_, info_) * png_get_channels(png_, info_);
    values_ == PngValues::stored ? png_set_packing(png_) : give_colors();
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  void give_colors() {
    if (type_ == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (type_ == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
  }

  bool read_rows() {
    if (setjmp(back_) != 0) return false;
    png_read_image(png_, rows_.data());
    return true;
  }

  const ImageFile& file_;
  const PngValues values_;
  std::span<const std::byte> left_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int type_ = 0;   // PNG_COLOR_TYPE of the file
  int depth_ = 0;  // bits of a pixel in the file
  std::vector<png_bytep> rows_;
  std::jmp_buf back_ = {};
  char text_[200] = {};
};

}  // namespace

void decode_png(const ImageFile& file, Pixels& out, int& orientation) {
  PngDecoder(file, PngValues::colors).decode(out);
  orientation = orientation_of(file.bytes);
}

void decode_png_mask(const ImageFile& file, Pixels& out, int& orientation) {
  PngDecoder(file, PngValues::stored).decode(out);
  orientation = orientation_of(file.bytes);
}

}  // namespace decent
