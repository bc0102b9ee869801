#pragma once
// The files that a command reads and writes; makes sure that it does not write over its inputs.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/config/recipe.h"

namespace decent {

class Model;

/// A file that is read, or a folder of such files.
struct InputFile {
  std::string what;  // for messages: "the model (model.path)"
  std::filesystem::path path;
  bool folder = false;
};

/// A file that is written, or a folder whose content the command changes.
struct OutputFile {
  std::string where;  // for messages: "--export"
  std::filesystem::path path;
  std::string way_out;  // for messages: "choose another name"
  bool folder = false;
};

/// Throws UserError if an output is the same file as an input: by its path, however spelled, by a
/// symbolic link or by a hard link; if an output file would be in an input folder; and if an input
/// file is in an output folder. Writes nothing.
void refuse_to_replace(std::span<const InputFile> inputs, std::span<const OutputFile> outputs);

/// The parts of a command line that decide which files are read and written.
struct CommandFiles {
  std::filesystem::path config;
  bool trains = false;     // writes the run's folder
  bool evaluates = false;  // adds to the metrics of the run's folder
  std::optional<std::filesystem::path> predict_file;
  std::optional<std::filesystem::path> export_file;
  std::optional<std::filesystem::path> checkpoint;  // to read, if the user named it
  int rank = 0;
};

/// Throws UserError if the command would write over a file that it or the recipe names, if a folder
/// has the name of a file to be written, or if there is something that a folder of masks would
/// replace. External data of a model is checked only if `model` is given. Writes nothing.
void check_outputs(const CommandFiles& command, const Recipe& recipe, const Model* model = nullptr);

}  // namespace decent
