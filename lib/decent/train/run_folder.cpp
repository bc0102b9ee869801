#include "decent/train/run_folder.h"

#include <cstdio>

#include "decent/core/error.h"

namespace decent {

void RunFolder::check_free() const {
  std::error_code failed;
  if (std::filesystem::exists(path_, failed) && !std::filesystem::is_directory(path_, failed)) {
    throw UserError("output '" + path_.string() +
                    "' is a file, not a folder; choose another with --set output=DIR");
  }
  for (const std::filesystem::path& file : {recipe(), metrics(), checkpoints()}) {
    if (!std::filesystem::exists(file, failed)) continue;
    throw UserError(
        "output folder '" + path_.string() + "' already holds a run (" + file.filename().string() +
        ").\nContinue that run with --resume auto, or start afresh in another folder with "
        "--set output=DIR.");
  }
}

std::filesystem::path RunFolder::trace(int rank) const {
  char name[40];
  std::snprintf(name, sizeof name, "trace-rank-%04d.json", rank);
  return path_ / name;
}

}  // namespace decent
