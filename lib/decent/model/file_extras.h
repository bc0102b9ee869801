#pragma once
// What the file of a written model contains besides the model.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "decent/model/file_scaling.h"

namespace decent {

/// Under this name a model's file carries what its run learned from the training data: as an extra
/// file in TorchScript and torch.export, as an entry of the metadata in ONNX and safetensors.
inline constexpr const char* kDataInFile = "decent_train.data.json";

/// The same for information about training that a file written for inference has lost: text for
/// people.
inline constexpr const char* kLostInFile = "decent_train.lost_for_inference";

struct FileExtras {
  FileScaling scaling = {};  // only in formats that can hold it, see ModelFormat::holds_scaling
  std::string data = {};     // text for kDataInFile; empty: the file gets none
  /// For formats whose files hold the mode as constants: these get their values of training instead
  /// of those of evaluation.
  bool for_training = false;
};

/// The record's name in an archive of PyTorch, without the folder that contains all records.
inline std::string record_of_extra(std::string_view name) {
  return std::string("extra/").append(name);
}

/// The value of a key in a file's metadata; empty if it has none.
std::string text_in_metadata(const std::map<std::string, std::string>& metadata, const char* name);

/// The text that an archive of torch.jit.save or torch.export.save carries under a name. Empty if
/// it has none, and if the file cannot be read or is no archive, which is reported when it is
/// opened. Throws UserError if the text is damaged.
std::string text_in_archive(const std::filesystem::path& path, const char* name);
/// The text under kDataInFile.
std::string data_in_archive(const std::filesystem::path& path);

/// The same for a safetensors file, except that damage counts as no text.
std::string text_in_safetensors(const std::filesystem::path& path, const char* name);
std::string data_in_safetensors(const std::filesystem::path& path);

}  // namespace decent
