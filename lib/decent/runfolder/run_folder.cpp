#include "decent/runfolder/run_folder.h"

#include <cstdio>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

}  // namespace

void RunFolder::check_free() const {
  std::error_code failed;
  if (is_there(path_) && !std::filesystem::is_directory(path_, failed)) {
    throw UserError("output '" + path_.string() +
                    "' is a file, not a folder; choose another with --set output=DIR");
  }
  for (const std::filesystem::path& file : {recipe(), metrics(), checkpoints()}) {
    if (!is_there(file)) continue;
    throw UserError(
        "output folder '" + path_.string() + "' already holds a run (" + file.filename().string() +
        ").\nContinue that run with --resume auto, or start afresh in another folder with "
        "--set output=DIR.");
  }
}

bool RunFolder::holds_run() const {
  return is_there(recipe()) || is_there(metrics()) || is_there(checkpoints());
}

std::filesystem::path RunFolder::set_aside() const {
  std::vector<std::filesystem::path> models;
  for (const std::filesystem::path& file : RunFolder::models()) {
    if (is_there(file)) models.push_back(file);
  }
  if (models.empty() && !is_there(metrics())) return {};
  int number = 1;
  while (is_there(path_ / "set-aside" / std::to_string(number))) ++number;
  const std::filesystem::path place = path_ / "set-aside" / std::to_string(number);
  create_folders(place);
  if (is_there(metrics())) write_file(place / metrics().filename(), read_text(metrics()));
  try {
    if (is_there(run())) write_file(place / run().filename(), read_text(run()));
  } catch (const UserError&) {
    // The next start says that it is damaged.
  }
  for (const std::filesystem::path& file : models) rename_durably(file, place / file.filename());
  sync_folder(path_);
  return place;
}

std::filesystem::path RunFolder::model(RunModel which, std::string_view extension) const {
  return path_ / (which == RunModel::last ? "model" : "model-best") += extension;
}

std::filesystem::path RunFolder::adapters(RunModel which) const {
  return path_ / (which == RunModel::last ? "adapters.safetensors" : "adapters-best.safetensors");
}

std::filesystem::path RunFolder::peft(RunModel which) const {
  return path_ / (which == RunModel::last ? "adapters" : "adapters-best");
}

std::vector<std::filesystem::path> RunFolder::models() const {
  std::vector<std::filesystem::path> files;
  for (const RunModel which : {RunModel::last, RunModel::best}) {
    for (const std::string_view extension : {".pt", ".safetensors", ".onnx", ".pt2"})
      files.push_back(model(which, extension));
    files.push_back(adapters(which));
    files.push_back(peft(which));
  }
  return files;
}

std::filesystem::path RunFolder::trace(int rank) const {
  char name[40];
  std::snprintf(name, sizeof name, "trace-rank-%04d.json", rank);
  return path_ / name;
}

}  // namespace decent
