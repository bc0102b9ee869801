#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/images/decode.h"
#include "decent/data/images/listing.h"
#include "decent/data/learned.h"

namespace decent {
namespace {

// Images of kinds that cannot be read. Ignoring them would silently leave out data.
constexpr std::array<std::string_view, 51> kNotRead = {
    ".arw", ".avif", ".avifs", ".blp", ".bmp",  ".cr2", ".cr3", ".cur", ".dcm",  ".dds",  ".dib",
    ".dng", ".emf",  ".eps",   ".exr", ".fits", ".gif", ".hdr", ".hif", ".heic", ".heif", ".icns",
    ".ico", ".j2c",  ".j2k",   ".jls", ".jp2",  ".jpf", ".jpx", ".jxl", ".jxr",  ".nef",  ".orf",
    ".pam", ".pbm",  ".pcx",   ".pfm", ".pgm",  ".pnm", ".ppm", ".psd", ".qoi",  ".raf",  ".rw2",
    ".sgi", ".svg",  ".tga",   ".tif", ".tiff", ".wmf", ".xcf"};
// Folders that systems create among a user's folders. Those whose names begin with a dot count too.
constexpr std::array<std::string_view, 6> kOfSystems = {
    "@eaDir", "#recycle", "lost+found", "System Volume Information", "$RECYCLE.BIN", "__MACOSX"};
constexpr std::size_t kMaxListedClasses = 8;
constexpr int kMaxClassDepth = 32;  // of folders in a class, because links may form a circle

enum class Kind { other, folder, file };

struct Entry {
  std::string name;
  Kind kind;
};

// A link has the kind of its target.
Kind kind_of(const dirent& entry, int folder) {
  if (entry.d_type == DT_DIR) return Kind::folder;
  if (entry.d_type == DT_REG) return Kind::file;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return Kind::other;
  struct stat status {};
  if (::fstatat(folder, entry.d_name, &status, 0) != 0) return Kind::file;  // reading it says why
  return S_ISDIR(status.st_mode)   ? Kind::folder
         : S_ISREG(status.st_mode) ? Kind::file
                                   : Kind::other;
}

bool is_of_a_system(const std::string& name) {
  return name.front() == '.' ||
         std::find(kOfSystems.begin(), kOfSystems.end(), name) != kOfSystems.end();
}

// The entries of a folder, without those that a system created.
std::vector<Entry> entries_of(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  const auto fail = [&] {
    throw UserError("cannot read the folder '" + folder.string() + "': " + std::strerror(errno));
  };
  if (open == nullptr) fail();
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr) break;
    if (is_of_a_system(entry->d_name)) continue;
    entries.push_back({entry->d_name, kind_of(*entry, ::dirfd(open.get()))});
  }
  if (errno != 0) fail();
  return entries;
}

// Whether a file has the content of an image. Asked for names without an ending, which are not
// read.
bool begins_as_image(const std::filesystem::path& file) {
  std::array<char, 12> begin{};
  std::ifstream(file, std::ios::binary).read(begin.data(), begin.size());
  return is_image(std::as_bytes(std::span(begin)));
}

void refuse_other_kinds(const std::filesystem::path& folder, const std::string& name) {
  const bool has_ending = name.find('.') != std::string::npos;
  if (has_ending ? !ends_in_any(name, kNotRead) : !begins_as_image(folder / name)) return;
  throw UserError("'" + (folder / name).string() +
                  "': images are read from files that end in .jpg, .jpeg, .png or .webp");
}

std::string below(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

// Collects the paths of the images in `folder`, relative to `root`. `folder` is a path below
// `root`, or empty.
void collect(const std::filesystem::path& root, const std::string& folder, int depth,
             std::vector<std::string>& files) {
  if (depth > kMaxClassDepth) {
    throw UserError("'" + (root / folder).string() + "' is more than " +
                    std::to_string(kMaxClassDepth) + " folders deep");
  }
  for (const Entry& entry : entries_of(root / folder)) {
    if (entry.kind == Kind::folder) {
      collect(root, below(folder, entry.name), depth + 1, files);
    } else if (entry.kind == Kind::file) {
      if (is_image_name(entry.name)) files.push_back(below(folder, entry.name));
      refuse_other_kinds(root / folder, entry.name);
    }
  }
}

std::vector<std::string> classes_in(const std::filesystem::path& folder) {
  std::vector<std::string> classes;
  for (const Entry& entry : entries_of(folder)) {
    if (entry.kind == Kind::folder) classes.push_back(entry.name);
    if (entry.kind != Kind::file) continue;
    refuse_other_kinds(folder, entry.name);
    if (is_image_name(entry.name)) {
      throw UserError(
          "'" + (folder / entry.name).string() +
          "' is in none of the folders of classes: expected a folder for each class, or "
          "path: a .csv list");
    }
  }
  if (classes.empty()) {
    throw UserError("'" + folder.string() +
                    "' has no folders: expected one for each class, with its images");
  }
  std::sort(classes.begin(), classes.end());
  return classes;
}

// The number of the class whose folder has that name.
std::int64_t number_of(const std::filesystem::path& folder, const std::string& name,
                       const std::vector<std::string>& classes, const ClassNumbers& numbers) {
  if (const auto number = class_of(name, classes)) return *number;
  const std::optional<std::int64_t> value =
      numbers.known && numbers.known->empty() ? number_in_label(name) : std::nullopt;
  if (value) return *value;
  const auto nearest = nearest_name(name, classes);
  throw UserError("'" + (folder / name).string() + "': class " + in_quotes(name) + " is not in " +
                  numbers.where +
                  (classes.empty() ? ", whose classes are numbers without names"
                                   : ", whose classes are " + some_of(classes, kMaxListedClasses)) +
                  (nearest ? "; did you mean " + in_quotes(*nearest) + "?" : ""));
}

}  // namespace

ImageListing list_folders(const std::filesystem::path& folder, const ClassNumbers& numbers) {
  ImageListing listing(folder);
  std::vector<std::string> names = classes_in(folder);
  if (!numbers.known) sort_classes(names, numbers.bytewise);
  std::vector<std::string> classes = numbers.known.value_or(names);
  std::vector<std::string> files;
  for (const std::string& name : names) {
    const std::int64_t label = number_of(folder, name, classes, numbers);
    files.clear();
    collect(folder, name, 1, files);
    if (files.empty()) {
      throw UserError("'" + (folder / name).string() +
                      "', the folder of a class, has no images (.jpg, .jpeg, .png, .webp)");
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) listing.add(file, label);
  }
  listing.set_classes(std::move(classes));
  return listing;
}

ImageListing list_images(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  collect(folder, "", 0, files);
  if (files.empty())
    throw UserError("'" + folder.string() + "' has no images (.jpg, .jpeg, .png, .webp)");
  const auto place = [](const std::string& file) {
    return std::pair(std::string_view(file).substr(0, file.find('/')), std::string_view(file));
  };
  std::sort(files.begin(), files.end(),
            [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  ImageListing listing(folder);
  for (const std::string& file : files) listing.add(file, 0);
  return listing;
}

}  // namespace decent
