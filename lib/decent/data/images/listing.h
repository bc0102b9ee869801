#pragma once
// Finds images and their classes: in folders, one for each class, or from a list.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/data/images/class_labels.h"

namespace decent {

/// A column of a list, with its number for each image.
struct NumberColumn {
  std::string name;
  std::vector<float> values;
};

/// Names of files below a folder, with their labels. All names are in one piece of memory, because
/// there may be a million.
class ImageListing {
 public:
  explicit ImageListing(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(std::string_view file, std::int64_t label);
  void set_classes(std::vector<std::string> classes) { classes_ = std::move(classes); }
  void set_columns(std::vector<NumberColumn> columns) { columns_ = std::move(columns); }

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  /// The name of image `index` relative to the folder, and its path.
  std::string_view name(std::int64_t index) const;
  std::filesystem::path file(std::int64_t index) const;
  std::int64_t label(std::int64_t index) const { return labels_[static_cast<std::size_t>(index)]; }
  /// None if a list has numbers.
  const std::vector<std::string>& classes() const { return classes_; }
  /// Those that `fields` names.
  const std::vector<NumberColumn>& columns() const { return columns_; }

 private:
  std::filesystem::path folder_;
  std::string names_;
  std::vector<std::size_t> ends_;  // of each name
  std::vector<std::int64_t> labels_;
  std::vector<std::string> classes_;
  std::vector<NumberColumn> columns_;
};

/// Whether a name has one of those endings, in upper or lower case.
bool ends_in_any(std::string_view name, std::span<const std::string_view> endings);
/// The same for the endings of images that can be read.
bool is_image_name(std::string_view name);

/// Classes are the folders in `folder`, sorted by sort_classes, or numbered by `numbers`. The
/// images of a class are the files in its folder and below with the ending of an image, in the
/// order of their paths. Folders that a system created (a name with a dot in front, @eaDir,
/// lost+found) are ignored. Only files whose name has no ending are opened. Throws UserError for a
/// class without images, for images outside the folders, and for images of kinds that cannot be
/// read.
ImageListing list_folders(const std::filesystem::path& folder, const ClassNumbers& numbers = {});

/// All images in the folder and below it, without classes. They are ordered by the first part of
/// their paths below the folder, then by the whole path, so that images in a folder for each class
/// have the order of list_folders. Throws UserError for a folder without images, and for images of
/// kinds that cannot be read.
ImageListing list_images(const std::filesystem::path& folder);

/// A text of two columns, image and class: `file,label`. Files are relative to the list's folder.
/// Labels become numbers as numbered_labels says. Blanks around a field that is not quoted are
/// ignored. The first line may be a header. With `fields`, there may be further columns, and those
/// that it names are kept. Throws UserError naming the line.
ImageListing read_image_list(const std::filesystem::path& path, const ClassNumbers& numbers = {},
                             const std::vector<std::string>& fields = {});
/// The same for the text of a file of that name.
ImageListing parse_image_list(std::string_view text, const std::filesystem::path& path,
                              const ClassNumbers& numbers = {},
                              const std::vector<std::string>& fields = {});
/// The same without classes: a second column may be absent, and is ignored.
ImageListing read_image_names(const std::filesystem::path& path,
                              const std::vector<std::string>& fields = {});

}  // namespace decent
