#include "decent/resume/run_identity.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

// The ids of the run in a folder; none if it has no checkpoints, or only those of older versions.
std::set<std::string> run_ids_in(const CheckpointFolder& checkpoints) {
  std::set<std::string> ids;
  checkpoints.visit_manifests(
      [&](std::int64_t, const Manifest& manifest) { ids.insert(manifest.run); });
  ids.erase("");
  return ids;
}

// Without ids, the folder tells, or the recipe, which contains the path of the output folder. The
// folder of rank 0 may have lost checkpoints that other machines still have.
bool looks_like_run(const FoundCheckpoint& found, const RunFolder& folder) {
  std::error_code failed;
  const auto above = std::filesystem::absolute(found.folder).parent_path();
  const auto own = std::filesystem::absolute(folder.checkpoints());
  if (above == own || std::filesystem::equivalent(above, own, failed)) return true;
  return std::filesystem::exists(folder.recipe(), failed) &&
         read_text(folder.recipe()) == found.manifest.recipe;
}

// Whether the folder's run began with another run's checkpoint, too, and ended without saving.
bool began_alike(const RunFolder& folder, const std::string& recipe) {
  std::error_code failed;
  const auto checkpoints = std::filesystem::directory_iterator(folder.checkpoints(), failed);
  if (checkpoints != std::filesystem::directory_iterator()) return false;
  return std::filesystem::exists(folder.recipe(), failed) && read_text(folder.recipe()) == recipe;
}

}  // namespace

bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder) {
  const std::set<std::string> ids = run_ids_in(CheckpointFolder(folder.checkpoints()));
  const bool can_tell = !ids.empty() && !found.manifest.run.empty();
  return can_tell ? ids.contains(found.manifest.run) : looks_like_run(found, folder);
}

std::string resumed_run_id(const FoundCheckpoint& found, const RunFolder& folder,
                           const std::string& recipe, const std::string& fresh) {
  if (!folder.holds_run() || began_alike(folder, recipe)) return fresh;
  if (!is_of_run(found, folder)) {
    throw UserError("checkpoint '" + found.folder.string() +
                    "' is of another run than the one in output folder '" + folder.path().string() +
                    "'.\n--resume auto continues the one in the folder; to go on from this "
                    "checkpoint choose another folder with --set output=DIR.");
  }
  return found.manifest.run.empty() ? fresh : found.manifest.run;
}

}  // namespace decent
