#pragma once
// Files of models: a format is a row of the table in formats.cpp. Only this table looks at the
// ending of a file's name (for model.weights: weights/formats.h). No torch.

#include <filesystem>
#include <string>
#include <string_view>

#include "decent/model/import_options.h"

namespace decent {

class Model;
struct FileExtras;
struct OpenedModel;

struct ModelFormat {
  std::string_view name;       // "TorchScript"
  std::string_view extension;  // ".pt"
  /// Reads a file. Throws UserError, with advice, if it holds no model that can be trained. Null:
  /// files of this format hold weights only.
  OpenedModel (*open)(const std::filesystem::path& path, const ImportOptions& options);
  /// Writes any model, whatever file it came from. Throws WriteError. Null: a file of this format
  /// can only be written as the model's original file with new weights, see
  /// ModelOrigin::write_back.
  void (*write)(Model& model, const std::filesystem::path& path, const FileExtras& extras);
  /// FileExtras::data of a file; empty if it has none or cannot be read. Throws UserError if the
  /// text is damaged.
  std::string (*data_in)(const std::filesystem::path& path);
  /// Whether `write` puts the scalings into the file. Other formats leave them out.
  bool holds_scaling = false;
};

/// The format for the ending of a file's name; null if there is none.
const ModelFormat* find_model_format(const std::filesystem::path& path);

/// "TorchScript (.pt), ONNX (.onnx) and torch.export (.pt2)": files that can be trained.
std::string trainable_formats();
/// ".pt, .safetensors or .onnx": the endings that the name of a written file may have.
std::string written_extensions();

/// Opens a model. A file whose ending belongs to no format is taken for TorchScript, whose files
/// have many endings. Throws UserError.
Model open_model(const std::filesystem::path& path, const ImportOptions& options = {});

/// Writes a trained model in the format for the file's name. Throws UserError if there is none, or
/// if the format can only hold models that were read from it; WriteError. Of adapters, those that
/// are merged (MergedAdapters) are in the file.
void write_model(Model& model, const std::filesystem::path& path);
/// The same with extras; scalings are written only if the format can hold them.
void write_model(Model& model, const std::filesystem::path& path, const FileExtras& extras);

/// What the run that wrote a file of a model or of weights had learned from its training data, see
/// ModelFormat::data_in.
std::string data_in_file(const std::filesystem::path& path);

/// Whether a file with this name can hold scalings.
bool holds_scaling(const std::filesystem::path& path);

/// Whether a file with this name is written by ModelOrigin::write_back. Such a file can be opened
/// again, and must then compute the same as the model.
bool is_written_back(const std::filesystem::path& path);

}  // namespace decent
