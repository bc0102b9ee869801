#pragma once
// Image files and their classes as a data source: x float32 [channels, height, width] from 0 to 1,
// y int64.

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
};

/// Listed images as a source. Where their files are is for a derived class to know.
class ImagesSource : public Source {
 public:
  ImagesSource(ImageListing listing, const ImageForm& form);

  const std::vector<Field>& fields() const final { return fields_; }
  std::int64_t size() const final { return listing_.size(); }
  bool decodes() const final { return true; }
  std::vector<std::string> classes() const final { return listing_.classes(); }
  std::vector<std::string> notes() const final;
  void read(std::size_t field, std::span<const std::int64_t> indices, std::byte* out) const final;
  void read_one(std::span<const std::size_t> fields, std::int64_t index,
                std::span<HostArray> sample) const final;

 protected:
  const ImageListing& listing() const { return listing_; }

 private:
  /// Fills `content` with the file of an image, and returns the file's name for messages. Any
  /// thread.
  virtual std::string read_file(std::int64_t index, std::vector<std::byte>& content) const = 0;

  void read_image(std::int64_t index, HostArray& out) const;
  const Pixels& decoded(std::int64_t index) const;
  void write(const Pixels& pixels, ImageSize own, std::byte* out) const;

  ImageListing listing_;
  int channels_;
  std::size_t first_own_ = 0;  // the number of the first field that is a column of the list
  std::optional<ImageSize> size_;
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
  ImageForm form = {};         // without labels, takes any folder or list of images
  ClassNumbers numbers = {};
  std::vector<std::string> fields = {};  // columns of a list, by name or number
};

/// Throws UserError if there are no images, and for a list with mistakes. Mistakes in an image are
/// found when it is read.
std::unique_ptr<Source> open_images_source(const ImagesOptions& options);

}  // namespace decent
