#include "decent/train/output_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/data/shards.h"
#include "decent/model/model.h"
#include "decent/report/predictions/formats.h"
#include "decent/runfolder/run_folder.h"
#include "decent/train/model_files.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

// The path without symbolic links, "." and "..", even if not all of it exists yet.
fs::path resolved(const fs::path& path) {
  std::error_code failed;
  const fs::path found = fs::weakly_canonical(fs::absolute(path), failed);
  return failed ? fs::absolute(path).lexically_normal() : found;
}

/// What tells whether two paths are the same file. The file system is asked only once for each
/// path, as there may be thousands.
struct Location {
  explicit Location(const fs::path& named) : path(resolved(named)) {
    struct stat info {};
    if (::stat(named.c_str(), &info) == 0) file.emplace(info.st_dev, info.st_ino);
  }
  fs::path path;
  std::optional<std::pair<dev_t, ino_t>> file;  // if it exists
};

bool same_file(const Location& a, const Location& b) {
  return (a.file && a.file == b.file) || a.path == b.path;
}

bool is_in(const Location& place, const Location& folder) {
  const fs::path& begin = folder.path;
  return std::mismatch(begin.begin(), begin.end(), place.path.begin(), place.path.end()).first ==
         begin.end();
}

// Whether the path is a hard link to a file in the folder.
bool links_into(const fs::path& path, const fs::path& folder) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return false;
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code missing;
    if (fs::equivalent(path, it->path(), missing)) return true;
  }
  return false;
}

[[noreturn]] void refuse(const OutputFile& output, const std::string& what) {
  throw UserError(output.where + ": '" + output.path.string() + "' " + what +
                  ".\nA file that is read is never written over: " + output.way_out);
}

void refuse_to_replace(const InputFile& input, const Location& read, const OutputFile& output,
                       const Location& written) {
  const std::string named = input.what + " '" + input.path.string() + "'";
  if (input.folder && output.folder) return;  // a run goes on from its own checkpoints
  if (output.folder) {
    if (is_in(read, written)) refuse(output, "is the folder in which " + named + " is");
  } else if (input.folder) {
    if (is_in(written, read) || links_into(output.path, input.path))
      refuse(output, "is a file of " + named);
  } else if (same_file(written, read)) {
    refuse(output, "is the same file as " + named);
  }
}

template <typename File>
std::vector<Location> places_of(std::span<const File> files) {
  std::vector<Location> places;
  for (const File& file : files) places.emplace_back(file.path);
  return places;
}

// ---- what is read ---------------------------------------------------------------------------

// In every format, a key whose value is a path names files that are read.
std::vector<fs::path> files_of(const SourceRecipe& source) {
  Paths paths;
  for (const auto& [name, value] : source.options.all()) {
    if (const auto* one = std::get_if<fs::path>(&value)) paths.push_back(*one);
    if (const auto* several = std::get_if<Paths>(&value))
      paths.insert(paths.end(), several->begin(), several->end());
  }
  try {
    return expand_globs(paths);
  } catch (const UserError&) {
    return {};  // there is no file to replace; opening the source will report it
  }
}

void add_data(const std::string& key, const SourceRecipe* source, std::vector<InputFile>& inputs) {
  if (source == nullptr) return;
  for (const fs::path& file : files_of(*source)) inputs.push_back({"the data (" + key + ")", file});
}

// Opening any other folder as a checkpoint fails, with a message that says what it is.
bool holds_checkpoint(const fs::path& folder) {
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (name == "manifest.json" || (name.starts_with("rank-") && name.ends_with(".safetensors")))
      return true;
  }
  return false;
}

std::vector<InputFile> inputs_of(const CommandFiles& command, const Recipe& recipe) {
  std::vector<InputFile> inputs;
  for (const fs::path& file : recipe_files(command.config))
    inputs.push_back(
        {inputs.empty() ? "the recipe (--config)" : "a recipe that is extended", file});
  inputs.push_back({"the model (model.path)", recipe.model.path});
  if (recipe.model.weights)
    inputs.push_back({"the weights (model.weights)", *recipe.model.weights});
  if (recipe.model.lora && recipe.model.lora->adapters)
    inputs.push_back({"the adapters (model.lora.adapters)", *recipe.model.lora->adapters});
  add_data("data.train", &recipe.data.train, inputs);
  add_data("data.eval", recipe.data.eval ? &*recipe.data.eval : nullptr, inputs);
  add_data("data.predict", recipe.data.predict ? &*recipe.data.predict : nullptr, inputs);
  if (command.checkpoint && holds_checkpoint(*command.checkpoint)) {
    inputs.push_back({"the checkpoint", *command.checkpoint, true});
  }
  inputs.push_back({"the run's checkpoints", RunFolder(recipe.output).checkpoints(), true});
  return inputs;
}

void add_external_data(const Model& model, std::vector<InputFile>& inputs) {
  for (const fs::path& file : model.origin().other_files()) {
    inputs.push_back({"the model's external data", file});
  }
}

// ---- what is written ------------------------------------------------------------------------

void add_run(const Recipe& recipe, int rank, std::vector<OutputFile>& outputs) {
  const RunFolder folder(recipe.output);
  const std::string where = "output '" + recipe.output.string() + "'";
  const std::string other_folder = "choose another folder with --set output=DIR";
  outputs.push_back({where, folder.recipe(),
                     "copy the recipe to another place for --config, or choose another folder "
                     "with --set output=DIR"});
  for (const fs::path& file :
       {folder.metrics(), folder.data(), folder.log(), folder.run(), folder.report(),
        folder.skipped(), folder.lock(), folder.trace(rank)})
    outputs.push_back({where, file, other_folder});
  for (const RunModel which : {RunModel::last, RunModel::best}) {
    if (which == RunModel::best && !recipe.checkpoint.keep_best) continue;
    for (const auto& [what, file] : model_files(recipe, which))
      outputs.push_back({where, file, other_folder});
    if (recipe.model.lora) outputs.push_back({where, folder.peft(which), other_folder, true});
  }
  outputs.push_back({where, folder.checkpoints(), other_folder, true});
}

std::vector<OutputFile> outputs_of(const CommandFiles& command, const Recipe& recipe) {
  std::vector<OutputFile> outputs;
  if (command.trains) {
    add_run(recipe, command.rank, outputs);
  } else if (command.evaluates) {
    const RunFolder folder(recipe.output);
    for (const fs::path& file :
         {folder.metrics(), folder.class_scores(), folder.confusion(), folder.report()}) {
      outputs.push_back({"output '" + recipe.output.string() + "'", file,
                         "choose another folder with --set output=DIR"});
    }
  }
  if (command.predict_file) {
    const fs::path& path = *command.predict_file;
    const bool folder = is_mask_folder(path);
    outputs.push_back(
        {"--predict", folder ? path.parent_path() : path, "choose another name or folder", folder});
  }
  // Written external data never gets a name that exists already, so it is not listed.
  if (command.export_file) {
    outputs.push_back({"--export", *command.export_file, "choose another name or folder"});
  }
  return outputs;
}

// Otherwise only renaming the finished file would fail, at the end of training.
void refuse_folders(std::span<const OutputFile> outputs) {
  for (const OutputFile& output : outputs) {
    std::error_code absent;
    if (output.folder || !fs::is_directory(output.path, absent)) continue;
    throw UserError(
        output.where + ": '" + output.path.string() +
        "' is a folder, and a file of this name is to be written: move the folder away, or " +
        output.way_out);
  }
}

// A folder of masks replaces nothing but an empty folder: renaming it would fail at the end.
void check_masks(const fs::path& predict_file) {
  const fs::path folder = predict_file.parent_path();
  std::error_code failed;
  if (!fs::exists(folder, failed)) return;
  if (fs::is_directory(folder, failed) && fs::is_empty(folder, failed)) return;
  throw UserError("--predict '" + predict_file.string() +
                  "': there is something of this name already; remove it, or choose another name");
}

// Throws if the predictions would replace another file that this command or the run writes.
void check_predictions(const CommandFiles& command, const RunFolder& run) {
  std::vector<InputFile> others = {{"the run's model", run.model(RunModel::last, ".safetensors")},
                                   {"the run's model", run.model(RunModel::best, ".safetensors")},
                                   {"the run's metrics", run.metrics()},
                                   {"the run's data.json", run.data()},
                                   {"the run's list of samples", run.skipped()},
                                   {"the run's table of classes", run.class_scores()},
                                   {"the run's table of classes", run.confusion()}};
  if (command.export_file) others.push_back({"the file of --export", *command.export_file});
  if (is_mask_folder(*command.predict_file)) check_masks(*command.predict_file);
  const Location written(*command.predict_file);
  for (const InputFile& other : others) {
    if (!same_file(written, Location(other.path))) continue;
    throw UserError("--predict: '" + command.predict_file->string() + "' is " + other.what +
                    ": choose another name or folder");
  }
}

}  // namespace

void refuse_to_replace(std::span<const InputFile> inputs, std::span<const OutputFile> outputs) {
  const std::vector<Location> written = places_of(outputs);
  const std::vector<Location> read = places_of(inputs);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      refuse_to_replace(inputs[i], read[i], outputs[o], written[o]);
    }
  }
}

void check_outputs(const CommandFiles& command, const Recipe& recipe, const Model* model) {
  if (command.predict_file) check_predictions(command, RunFolder(recipe.output));
  std::vector<InputFile> inputs = inputs_of(command, recipe);
  if (model != nullptr) add_external_data(*model, inputs);
  const std::vector<OutputFile> outputs = outputs_of(command, recipe);
  refuse_to_replace(inputs, outputs);
  refuse_folders(outputs);
}

}  // namespace decent
