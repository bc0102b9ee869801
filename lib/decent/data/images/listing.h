#pragma once
// Which images there are, and of which classes: from a folder for each class, or from a list.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// Names of files below a folder with their labels. The names lie one behind another: a million of
/// them are one piece of memory.
class ImageListing {
 public:
  explicit ImageListing(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(std::string_view file, std::int64_t label);
  void set_classes(std::vector<std::string> classes) { classes_ = std::move(classes); }

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  /// Image `index` as it is called below the folder, and its path.
  std::string_view name(std::int64_t index) const;
  std::filesystem::path file(std::int64_t index) const;
  std::int64_t label(std::int64_t index) const { return labels_[static_cast<std::size_t>(index)]; }
  /// None where a list has numbers.
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  std::filesystem::path folder_;
  std::string names_;
  std::vector<std::size_t> ends_;  // of each name
  std::vector<std::int64_t> labels_;
  std::vector<std::string> classes_;
};

/// The numbers of classes.
struct ClassNumbers {
  /// The names of the classes of training, which give labels their numbers; empty where the
  /// training data numbers them itself. nullopt: the data is that of training.
  std::optional<std::vector<std::string>> known = std::nullopt;
  std::string where = {};  // says so, for messages
  bool bytewise = false;   // class_order
};

/// Whether a name has one of those endings, in capitals or not.
bool ends_in_any(std::string_view name, std::span<const std::string_view> endings);
/// The same of the endings of images that are read.
bool is_image_name(std::string_view name);

/// Classes are the folders in `folder`, sorted by sort_classes, or numbered as `numbers` knows
/// them; the images of a class are the files in its folder and below that end as images, in the
/// order of their paths. Folders that a system has made (a name with a dot in front, @eaDir,
/// lost+found) are passed over. No file is opened, but for those whose name has no ending. Throws
/// UserError for a class without images, for images outside the folders, and for images of kinds
/// that are not read.
ImageListing list_folders(const std::filesystem::path& folder, const ClassNumbers& numbers = {});

/// All images in the folder and below it, without classes: first by what stands in the folder
/// itself, then by their paths, so that the images of a folder for each class come in the order of
/// list_folders. Throws UserError for a folder without images, and for images of kinds that are not
/// read.
ImageListing list_images(const std::filesystem::path& folder);

/// A text of two columns, image and class: `file,label`. Files are relative to the list's folder.
/// Where all labels are whole numbers, they are the classes' numbers; else they are names, numbered
/// in the order of their bytes; labels that `numbers` knows have their numbers. Blanks around a
/// field that is not in quotes do not count. The first line may be a header. Throws UserError
/// naming the line, also for a label of no known class and for a marker of a missing value among
/// numbers.
ImageListing read_image_list(const std::filesystem::path& path, const ClassNumbers& numbers = {});
/// The same of the text in a file of that name.
ImageListing parse_image_list(std::string_view text, const std::filesystem::path& path,
                              const ClassNumbers& numbers = {});
/// The same without classes: a second column may be absent, and is not looked at.
ImageListing read_image_names(const std::filesystem::path& path);

}  // namespace decent
