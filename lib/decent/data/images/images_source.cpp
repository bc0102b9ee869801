#include "decent/data/images/images_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/built_in.h"
#include "decent/data/images/decode.h"
#include "decent/data/images/listing.h"
#include "decent/data/learned.h"
#include "decent/data/transforms/resample.h"

namespace decent {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      // O_NONBLOCK, because a pipe in place of the file would make it wait.
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail();
  }
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void read(std::vector<std::byte>& content) const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) fail();
    if (!S_ISREG(status.st_mode)) throw UserError("'" + path_.string() + "' is not a regular file");
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > kMostImageBytes) {
      throw UserError("'" + path_.string() + "' has " + std::to_string(size) +
                      " bytes; the most that is read of an image is " +
                      std::to_string(kMostImageBytes));
    }
    content.resize(size);
    std::size_t done = 0;
    while (done < size) {
      const ssize_t count = ::read(fd_, content.data() + done, size - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      if (count == 0) break;  // truncated meanwhile; the decoder says what is missing
      done += static_cast<std::size_t>(count);
    }
    content.resize(done);
  }

 private:
  [[noreturn]] void fail() const {
    throw UserError("cannot read '" + path_.string() + "': " + std::strerror(errno));
  }

  const std::filesystem::path& path_;
  int fd_;
};

// Each byte divided by 255, because a look-up is faster than a division.
constexpr std::array<float, 256> kShares = [] {
  std::array<float, 256> shares{};
  for (std::size_t byte = 0; byte < shares.size(); ++byte)
    shares[byte] = static_cast<float>(byte) / 255;
  return shares;
}();

// Converts pixels of bytes to planes of float32 from 0 to 1.
void to_planes(const Pixels& pixels, float* __restrict out) {
  const std::size_t count = pixels.count();
  const std::uint8_t* __restrict in = pixels.bytes.data();
  if (pixels.channels == 1) {
    for (std::size_t i = 0; i < count; ++i) out[i] = kShares[in[i]];
    return;
  }
  for (std::size_t i = 0; i < count; ++i, in += 3) {
    out[i] = kShares[in[0]];
    out[count + i] = kShares[in[1]];
    out[2 * count + i] = kShares[in[2]];
  }
}

// The fields x and y.
constexpr std::size_t kImageField = 0;
constexpr std::size_t kTargetField = 1;

constexpr const char* kMasksKey = "masks";

std::string extents_text(const Pixels& pixels) {
  return std::to_string(pixels.width) + " by " + std::to_string(pixels.height);
}

// Each image is a file of its own.
class ImageFiles final : public ImagesSource {
 public:
  using ImagesSource::ImagesSource;

  void check_there(std::int64_t index) const override {
    const std::filesystem::path file = listing().file(index);
    std::error_code failed;
    if (std::filesystem::exists(file, failed)) return check_mask_there(index);
    throw UserError("cannot read '" + file.string() + "': No such file or directory");
  }
  SampleOrigin origin_of(std::int64_t index) const override {
    return {.file = std::string(listing().name(index))};
  }

 private:
  std::string read_file(std::int64_t index, std::vector<std::byte>& content) const override {
    const std::filesystem::path path = listing().file(index);
    OpenFile(path).read(content);
    return path.string();
  }
};

// Throws UserError if the data and the training data do not have both masks or both labels.
void check_masks(const std::optional<std::filesystem::path>& masks, const Reading& reading) {
  if (!reading.needs_target || reading.learned == nullptr) return;
  const bool trained = !reading.learned->is_null(kMasksKey);
  if (trained == masks.has_value()) return;
  throw UserError("images: masks: " + reading.where +
                  (trained ? " has masks; name the folder of the masks of this data"
                           : " has no masks; leave it out"));
}

std::unique_ptr<Source> open_as(const Options& options, const Reading& reading) {
  ImageForm form = image_form(options, reading, "images");
  form.masks = options.get_if<std::filesystem::path>(kMasksKey);
  check_masks(form.masks, reading);
  return open_images_source(
      {.path = options.get<std::filesystem::path>("path"),
       .form = std::move(form),
       .numbers = {.known = reading.classes,
                   .where = reading.where,
                   .bytewise = options.get<std::string>("class_order") == "bytewise"},
       .fields = named_fields(options)});
}

std::unique_ptr<Source> open(const Options& options) { return open_as(options, {}); }

}  // namespace

ImagesSource::ImagesSource(ImageListing listing, const ImageForm& form)
    : listing_(std::move(listing)),
      channels_(form.channels),
      size_(form.size),
      masks_(form.labels ? form.masks : std::nullopt) {
  const ImageSize size = size_.value_or(ImageSize{kAnyExtent, kAnyExtent});
  fields_ = {{"x", DType::float32, {channels_, size.height, size.width}}};
  if (form.labels) fields_.push_back({"y", DType::int64, {}});
  first_own_ = fields_.size();
  for (const NumberColumn& column : listing_.columns())
    fields_.push_back({column.name, DType::float32, {}});
  if (!masks_) return;
  fields_[kTargetField].shape = {size.height, size.width};
  fields_[kTargetField].mask_of = "x";
}

std::vector<std::string> ImagesSource::notes() const {
  const auto order = note_on_order(listing_.classes());
  return order ? std::vector{*order} : std::vector<std::string>{};
}

Options ImagesSource::learned() const { return masks_ ? Options{{kMasksKey, true}} : Options{}; }

// Reads image and target of a sample together, because a mask must have the extents of its image.
void ImagesSource::read_fields(std::span<const std::int64_t> indices,
                               std::span<std::byte* const> outs) const {
  std::byte* x = outs[kImageField];
  std::byte* y = first_own_ > kTargetField ? outs[kTargetField] : nullptr;
  for (const std::int64_t index : indices) {
    const Pixels* image = x == nullptr ? nullptr : &decoded(index);
    if (image != nullptr) {
      write_image(*image, x);
      x += fields_[kImageField].sample_bytes();
    }
    if (y == nullptr) continue;
    write_target(index, image, y);
    y += fields_[kTargetField].sample_bytes();
  }
  for (std::size_t own = first_own_; own < outs.size(); ++own)
    if (outs[own] != nullptr) write_column(own - first_own_, indices, outs[own]);
}

void ImagesSource::write_target(std::int64_t index, const Pixels* image, std::byte* out) const {
  if (masks_) return write_mask(decoded_mask(index, image), out);
  const std::int64_t label = listing_.label(index);
  std::memcpy(out, &label, sizeof label);
}

void ImagesSource::write_column(std::size_t column, std::span<const std::int64_t> indices,
                                std::byte* out) const {
  const std::vector<float>& values = listing_.columns()[column].values;
  for (const std::int64_t index : indices) {
    std::memcpy(out, &values[static_cast<std::size_t>(index)], sizeof(float));
    out += sizeof(float);
  }
}

void ImagesSource::read_one(std::span<const std::size_t> fields, std::int64_t index,
                            std::span<HostArray> sample) const {
  const bool has_image = std::find(fields.begin(), fields.end(), kImageField) != fields.end();
  const Pixels* image = has_image ? &decoded(index) : nullptr;
  for (const std::size_t field : fields) {
    if (field == kImageField) {
      read_image(*image, sample[field]);
    } else if (masks_ && field == kTargetField) {
      read_mask(decoded_mask(index, image), sample[field]);
    } else {
      Source::read_one({&field, 1}, index, sample);
    }
  }
}

// The result is in this thread's memory and valid until its next call.
const Pixels& ImagesSource::decoded(std::int64_t index) const {
  thread_local std::vector<std::byte> content;
  thread_local Pixels pixels;
  const std::string name = read_file(index, content);
  decode_image(content, name, channels_, pixels);
  return pixels;
}

// The same for its mask, which must have the extents of `image`, if that is given.
const Pixels& ImagesSource::decoded_mask(std::int64_t index, const Pixels* image) const {
  thread_local std::vector<std::byte> content;
  thread_local Pixels mask;
  const std::filesystem::path path = mask_file(index);
  OpenFile(path).read(content);
  decode_mask(content, path.string(), mask);
  const bool fits =
      image == nullptr || (mask.height == image->height && mask.width == image->width);
  if (fits) return mask;
  throw UserError("'" + path.string() + "': the mask has " + extents_text(mask) +
                  " pixels, its image '" + std::string(listing_.name(index)) + "' " +
                  extents_text(*image));
}

std::filesystem::path ImagesSource::mask_file(std::int64_t index) const {
  // The path of a list may be absolute.
  const std::filesystem::path name(listing_.name(index));
  std::filesystem::path file = (masks_.value() / name.relative_path()).replace_extension(".png");
  std::error_code failed;
  if (std::filesystem::exists(file, failed)) return file;
  throw UserError("image '" + name.string() + "' has no mask: there is no '" + file.string() + "'");
}

void ImagesSource::check_mask_there(std::int64_t index) const {
  if (masks_) mask_file(index);
}

// In a sample.
ImageSize ImagesSource::size_of(const Pixels& pixels) const {
  return size_.value_or(ImageSize{pixels.height, pixels.width});
}

void ImagesSource::write_image(const Pixels& pixels, std::byte* out) const {
  auto* values = reinterpret_cast<float*>(out);
  const ImageSize own{pixels.height, pixels.width};
  if (size_of(pixels) == own) return to_planes(pixels, values);
  resample({.data = pixels.bytes.data(),
            .size = own,
            .row_stride = own.width * pixels.channels,
            .channel_stride = 1,
            .channels = pixels.channels},
           *size_, values);
}

void ImagesSource::write_mask(const Pixels& mask, std::byte* out) const {
  const ImageView<std::uint8_t> view{.data = mask.bytes.data(),
                                     .size = {mask.height, mask.width},
                                     .row_stride = mask.width,
                                     .channel_stride = 1,
                                     .channels = 1};
  resample_nearest(view, size_of(mask), reinterpret_cast<std::int64_t*>(out));
}

void ImagesSource::read_image(const Pixels& pixels, HostArray& out) const {
  const ImageSize size = size_of(pixels);
  out.dtype = DType::float32;
  out.shape = {pixels.channels, size.height, size.width};
  out.bytes.resize(static_cast<std::size_t>(pixels.channels * size.height * size.width) *
                   sizeof(float));
  write_image(pixels, out.bytes.data());
}

void ImagesSource::read_mask(const Pixels& mask, HostArray& out) const {
  const ImageSize size = size_of(mask);
  out.dtype = DType::int64;
  out.shape = {size.height, size.width};
  out.bytes.resize(static_cast<std::size_t>(size.height * size.width) * sizeof(std::int64_t));
  write_mask(mask, out.bytes.data());
}

std::vector<OptionKey> image_form_keys() {
  OptionKey size = size_key(
      "n (a square) or [height, width]: all images are resized to this size, bilinear with "
      "antialiasing; null: each image keeps its own size, and transforms must bring all images to "
      "one size.");
  size.fallback = kNull;
  size.scope = OptionScope::meaning;
  return {{.name = "channels",
           .type = OptionType::integer,
           .meaning = "3 (red, green, blue) or 1 (gray).",
           .fallback = std::int64_t{3},
           .range = within(1, 3),
           .scope = OptionScope::meaning},
          std::move(size)};
}

ImageForm image_form(const Options& options, const Reading& reading, const std::string& format) {
  const auto size = options.get_if<std::vector<std::int64_t>>("size");
  const auto channels = options.get<std::int64_t>("channels");
  if (channels != 1 && channels != 3)
    throw UserError(format + ": channels: expected 1 or 3, not " + std::to_string(channels));
  return {.channels = static_cast<int>(channels),
          .size = size ? std::optional(image_size(*size, format)) : std::nullopt,
          .labels = reading.needs_target};
}

std::unique_ptr<Source> open_images_source(const ImagesOptions& options) {
  std::error_code none;
  const bool labels = options.form.labels && !options.form.masks;
  const bool folder = std::filesystem::is_directory(options.path, none);
  if (!folder && options.path.extension() != ".csv") {
    throw UserError("'" + options.path.string() + "': expected a folder " +
                    (labels ? "with a folder for each class" : "of images") + ", or a list, .csv");
  }
  if (folder && !options.fields.empty()) {
    throw UserError("fields: the folder '" + options.path.string() +
                    "' has no columns; expected a list, .csv");
  }
  if (options.form.masks && !std::filesystem::is_directory(*options.form.masks, none)) {
    throw UserError("images: masks: '" + options.form.masks->string() +
                    "': expected a folder with a mask for each image");
  }
  const auto listed = [&] {
    if (folder) {
      return labels ? list_folders(options.path, options.numbers) : list_images(options.path);
    }
    return labels ? read_image_list(options.path, options.numbers, options.fields)
                  : read_image_names(options.path, options.fields);
  };
  return std::make_unique<ImageFiles>(listed(), options.form);
}

DataFormat images_format() {
  std::vector<OptionKey> keys = image_form_keys();
  keys.insert(keys.begin(), {.name = "path",
                             .type = OptionType::path,
                             .meaning = "A folder with a folder for each class, or a `.csv` list "
                                        "with lines of `file,label`."});
  keys.push_back({.name = kMasksKey,
                  .type = OptionType::path,
                  .meaning = "A folder with a mask for each image, a .png file of the same name "
                             "whose values are the classes of the pixels; path is then any folder "
                             "or list of images. null: images have classes.",
                  .fallback = kNull});
  keys.push_back({.name = "class_order",
                  .type = OptionType::text,
                  .meaning = "Order of the classes if all names are whole numbers: by value, or "
                             "bytewise. Other names are always in bytewise order.",
                  .fallback = std::string("numeric"),
                  .names = {"numeric", "bytewise"},
                  .scope = OptionScope::meaning});
  keys.push_back(fields_key());
  return {.name = "images", .keys = std::move(keys), .open = open, .open_as = open_as};
}

}  // namespace decent
