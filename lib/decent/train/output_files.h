#pragma once
// What a command reads and writes, and that none of the files that it writes is one that it reads.

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

/// A file that is written, or a folder whose content the command puts in order.
struct OutputFile {
  std::string where;  // for messages: "--export"
  std::filesystem::path path;
  std::string way_out;  // for messages: "choose another name"
  bool folder = false;
};

/// Throws UserError where an output is the same file as an input: by its path, spelled in any way,
/// through a symbolic link, or as another name of the same file (a hard link); where an output file
/// would stand in an input folder; and where an input file stands in an output folder. Nothing is
/// written.
void refuse_to_replace(std::span<const InputFile> inputs, std::span<const OutputFile> outputs);

/// What of a command line decides which files are read and written.
struct CommandFiles {
  std::filesystem::path config;
  bool trains = false;     // writes the run's folder
  bool evaluates = false;  // adds to the metrics of the run's folder
  std::optional<std::filesystem::path> predict_file;
  std::optional<std::filesystem::path> export_file;
  std::optional<std::filesystem::path> checkpoint;  // that is read, where it is given by its name
  int rank = 0;
};

/// Throws UserError where the command would write over a file that it or the recipe names, or where
/// a folder stands in the place of a file to be written. The external data of a model is only known
/// with the model. Nothing is written.
void check_outputs(const CommandFiles& command, const Recipe& recipe, const Model* model = nullptr);

}  // namespace decent
