#pragma once
// External data: elements of tensors in other files of the model's folder.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/core/file.h"
#include "decent/onnx/format/input.h"

namespace decent::onnx {

/// The content of a tensor's external_data entries.
struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

/// A location as a path inside the model's folder, without "." and empty components. Throws
/// UserError, naming `tensor`, if it is absolute, empty, contains ".." or is not a file's name.
std::string checked_location(const Input& input, const std::string& location,
                             const std::string& tensor);

/// The files that contain the tensors of one model.
///
/// A model file must not be able to make the program read, and pass on in an exported file, any
/// file that the user did not put beside it. So a location must be a relative path without "..",
/// and none of its components may be a symbolic link, which is checked while it is opened. A file
/// with a second name (a hard link) is refused as well: an unpacked archive can contain a link to
/// any file of the same file system, a search of the model's folder for the other name would be
/// slow and outdated when it ends, and no exporter creates hard links; the message says to copy the
/// file. Tensors may share a range, as tied weights do, but must not overlap otherwise.
class ExternalData {
 public:
  ExternalData(Input& input, std::filesystem::path folder);

  /// The elements of `tensor` (its name in messages), which takes `size` bytes. Throws UserError.
  std::span<const std::byte> claim(const ExternalPlace& place, std::uint64_t size,
                                   const std::string& tensor);

  /// Throws UserError if two tensors overlap without having the same range.
  void check_overlaps();

  std::vector<std::shared_ptr<const MappedFile>> files() const;

 private:
  struct Claim {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string tensor;
  };
  struct File {
    std::shared_ptr<const MappedFile> mapped;
    std::vector<Claim> claims;
  };
  File& open(const std::string& location, const std::string& tensor);

  Input* input_;
  std::filesystem::path folder_;
  std::map<std::string, File> files_;
};

}  // namespace decent::onnx
