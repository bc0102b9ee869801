#pragma once
// What a written model's file holds beside the model.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "decent/model/file_scaling.h"

namespace decent {

/// Under this name a model's file carries what its run learned of the training data: an extra file
/// of TorchScript and torch.export, an entry of the metadata of ONNX and safetensors.
inline constexpr const char* kDataInFile = "decent_train.data.json";

/// The same for what a file that was written for inference no longer tells of training: text for
/// people.
inline constexpr const char* kLostInFile = "decent_train.lost_for_inference";

struct FileExtras {
  FileScaling scaling = {};  // only formats that hold it, see ModelFormat::holds_scaling
  std::string data = {};     // text for kDataInFile; empty: the file gets none
  /// Of formats whose files hold the mode as constants: they are written as training has them, not
  /// as evaluation does.
  bool for_training = false;
};

/// Where an archive of PyTorch has it, without the one folder that all records lie in.
inline std::string record_of_extra(std::string_view name) {
  return std::string("extra/").append(name);
}

/// What the metadata of a file has under a key; empty where it has none.
std::string text_in_metadata(const std::map<std::string, std::string>& metadata, const char* name);

/// The text that an archive of torch.jit.save or torch.export.save carries under a name; empty
/// where it has none, and where the file cannot be read or is no archive, as whoever opens it says.
/// Throws UserError where the text is damaged.
std::string text_in_archive(const std::filesystem::path& path, const char* name);
/// That of kDataInFile.
std::string data_in_archive(const std::filesystem::path& path);

/// The same of a safetensors file.
std::string data_in_safetensors(const std::filesystem::path& path);

}  // namespace decent
