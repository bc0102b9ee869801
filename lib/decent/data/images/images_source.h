#pragma once
// Image files and their classes as a data source: x float32 [channels, height, width] from 0 to 1,
// y int64, which is a class for each image or, from masks, [height, width] for its pixels.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/data/formats.h"
#include "decent/data/images/decode.h"
#include "decent/data/images/listing.h"
#include "decent/data/source.h"
#include "decent/data/transforms/image_pass.h"

namespace decent {

/// What samples look like.
struct ImageForm {
  int channels = 3;               // 1 or 3
  std::optional<ImageSize> size;  // all images are resized to it; none: each keeps its own
  bool labels = true;             // false: there is no y
  /// The folder of the images' masks, which take the place of labels; none: there are no masks. The
  /// mask of a/b.jpg is a/b.png there.
  std::optional<std::filesystem::path> masks = std::nullopt;
};

/// Listed images as a source. Where their files are is for a derived class to know.
class ImagesSource : public SourceOfRows {
 public:
  ImagesSource(ImageListing listing, const ImageForm& form);

  const std::vector<Field>& fields() const final { return fields_; }
  std::int64_t size() const final { return listing_.size(); }
  bool decodes() const final { return true; }
  std::vector<std::string> classes() const final { return listing_.classes(); }
  std::vector<std::string> notes() const final;
  /// Whether there are masks.
  Options learned() const final;
  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const final;
  void read_one(std::span<const std::size_t> fields, std::int64_t index,
                std::span<HostArray> sample) const final;

 protected:
  const ImageListing& listing() const { return listing_; }
  /// Throws UserError if the image has no mask although there are masks.
  void check_mask_there(std::int64_t index) const;

 private:
  /// Fills `content` with the file of an image, and returns the file's name for messages. Any
  /// thread.
  virtual std::string read_file(std::int64_t index, std::vector<std::byte>& content) const = 0;

  const Pixels& decoded(std::int64_t index) const;
  const Pixels& decoded_mask(std::int64_t index, const Pixels* image) const;
  /// Throws UserError if it is not there.
  std::filesystem::path mask_file(std::int64_t index) const;
  ImageSize size_of(const Pixels& pixels) const;
  void write_image(const Pixels& pixels, std::byte* out) const;
  void write_target(std::int64_t index, const Pixels* image, std::byte* out) const;
  void write_column(std::size_t column, std::span<const std::int64_t> indices,
                    std::byte* out) const;
  void write_mask(const Pixels& mask, std::byte* out) const;
  void read_image(const Pixels& pixels, HostArray& out) const;
  void read_mask(const Pixels& mask, HostArray& out) const;

  ImageListing listing_;
  int channels_;
  std::size_t first_own_ = 0;  // the number of the first field that is a column of the list
  std::optional<ImageSize> size_;
  std::optional<std::filesystem::path> masks_;
  std::vector<Field> fields_;
};

/// The most bytes of an image file that are read.
inline constexpr std::size_t kMostImageBytes = std::size_t{1} << 30;

/// The keys of recipes that say what samples look like.
std::vector<OptionKey> image_form_keys();
/// Their values, for data of a reading. Throws UserError, which begins with the format's name.
ImageForm image_form(const Options& options, const Reading& reading, const std::string& format);

struct ImagesOptions {
  std::filesystem::path path;  // a folder of folders, or a list that ends in .csv
  ImageForm form = {};         // without labels or with masks, takes any folder or list of images
  ClassNumbers numbers = {};
  std::vector<std::string> fields = {};  // columns of a list, by name or number
};

/// Throws UserError if there are no images, and for a list with mistakes. Mistakes in an image are
/// found when it is read.
std::unique_ptr<Source> open_images_source(const ImagesOptions& options);

}  // namespace decent
