#pragma once
// The records of a torch.export archive: the entries of a zip archive, which are all in one folder
// and stored uncompressed.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/zip.h"

namespace decent::pt2 {

/// Folders and names in an archive, without the one folder that contains everything.
inline constexpr std::string_view kModelsFolder = "models/";
inline constexpr std::string_view kWeightsFolder = "data/weights/";
inline constexpr std::string_view kConstantsFolder = "data/constants/";
inline constexpr std::string_view kSampleInputsFolder = "data/sample_inputs/";

/// "models/model.json" for "model".
inline std::string program_record(std::string_view program) {
  return std::string(kModelsFolder).append(program) + ".json";
}

class Records {
 public:
  /// `bytes` must outlive this object. Throws UserError, which begins with `what` and contains
  /// advice, for anything that is not an archive of torch.export.save.
  Records(std::span<const std::byte> bytes, std::string what);

  /// The beginning of messages: "model 'net.pt2'".
  const std::string& what() const { return what_; }
  /// The same for messages about a record.
  std::string what_of(std::string_view record) const;

  /// The one folder that contains all records, with a slash at its end.
  const std::string& folder() const { return folder_; }

  /// nullptr if there is none.
  const ZipEntry* find(std::string_view name) const;
  /// Throws UserError if there is none.
  const ZipEntry& at(std::string_view name) const;
  /// The content of a record with text or a pickle, after checking its checksum. Throws UserError.
  std::string_view content(std::string_view name) const;

  /// The exported programs: "model" for "models/model.json".
  std::vector<std::string> programs() const;

 private:
  bool has_folder(std::string_view folder) const;
  void check_format() const;
  void check_programs() const;

  std::string what_;
  std::string folder_;
  std::map<std::string_view, ZipEntry> entries_;
};

}  // namespace decent::pt2
