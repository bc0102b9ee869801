#pragma once
// Files of models: a format is a row of the table in formats.cpp. What a file's name ends in is
// looked at there and nowhere else (of model.weights: weights/formats.h). No torch.

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
  /// Reads a file. Throws UserError, with the way out, where it holds no model that can be trained.
  /// Null: files of this format hold weights only.
  OpenedModel (*open)(const std::filesystem::path& path, const ImportOptions& options);
  /// Writes any model, whatever file it came from. Throws WriteError. Null: a file of this format
  /// is the model's own with other weights, see ModelOrigin::write_back.
  void (*write)(Model& model, const std::filesystem::path& path, const FileExtras& extras);
  /// FileExtras::data of a file; empty where it has none or cannot be read. Throws UserError where
  /// that is damaged.
  std::string (*data_in)(const std::filesystem::path& path);
  /// Whether `write` puts the scalings into the file; they are left out otherwise.
  bool holds_scaling = false;
};

/// The format that the end of a file's name says; null where it says none.
const ModelFormat* find_model_format(const std::filesystem::path& path);

/// "TorchScript (.pt), ONNX (.onnx) and torch.export (.pt2)": files that can be trained.
std::string trainable_formats();
/// ".pt, .safetensors or .onnx": what the name of a written file may end in.
std::string written_extensions();

/// Opens a model. A name that says no format is taken for TorchScript's, whose files are called
/// many things. Throws UserError.
Model open_model(const std::filesystem::path& path, const ImportOptions& options = {});

/// Writes a trained model in the format that the file's name says. Throws UserError where it says
/// none, or one that only holds models which came from it; WriteError.
void write_model(Model& model, const std::filesystem::path& path);
/// The same with what the file holds beside the model; scalings only where the format holds them.
void write_model(Model& model, const std::filesystem::path& path, const FileExtras& extras);

/// What the run that a file of a model or of weights came from learned of its training data, see
/// ModelFormat::data_in.
std::string data_in_file(const std::filesystem::path& path);

/// Whether scalings are part of a file of this name.
bool holds_scaling(const std::filesystem::path& path);

/// Whether a file of this name is written by ModelOrigin::write_back: it can be opened again, and
/// must then compute what the model does.
bool is_written_back(const std::filesystem::path& path);

}  // namespace decent
