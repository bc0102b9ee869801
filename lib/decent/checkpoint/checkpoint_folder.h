#pragma once
// The folder checkpoints/ of a run. A checkpoint in it is whole or absent: it is written under a
// temporary name, made durable, and renamed.
//
// - step-00000500/: a checkpoint
// - .step-00000600.writing/: one that is being written, or was when the program was killed
// - .step-00000100.removing/: one that is being removed, likewise
// - set-aside/step-00000700/: one that is later than the one from which a run resumed
//
// Nothing here talks to other workers: workers that share a folder agree among themselves on who
// does what.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/checkpoint/manifest.h"

namespace decent {

class CheckpointFolder {
 public:
  /// `path` need not exist.
  explicit CheckpointFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path path_of(std::int64_t step) const;

  /// The steps of all folders here that have a checkpoint's name, highest first.
  std::vector<std::int64_t> steps() const;

  /// Calls `visit` for each of them whose manifest can be read, highest first, and skips the
  /// others.
  void visit_manifests(
      const std::function<void(std::int64_t step, const Manifest& manifest)>& visit) const;

  /// The steps of checkpoints that were being written and never got their final name;
  /// writing_path_of() is the folder of such a checkpoint.
  std::vector<std::int64_t> steps_being_written() const;
  std::filesystem::path writing_path_of(std::int64_t step) const;

  /// The folder to which the files of a checkpoint are written; created if it does not exist.
  /// Throws WriteError.
  std::filesystem::path begin(std::int64_t step) const;

  /// Writes the manifest beside these files, makes the folder durable and renames it to its final
  /// name. Replaces an existing checkpoint of the same step. Throws WriteError.
  void publish(const Manifest& manifest) const;

  /// Replaces the manifest of a published checkpoint, whole or not at all. Throws WriteError.
  void replace_manifest(const Manifest& manifest) const;

  /// Adds the evaluation of that step to a published checkpoint that was saved before it: the
  /// manifest is replaced atomically. Throws WriteError, CheckpointDamaged.
  void note_evaluation(std::int64_t step, const Numbers& metrics, const Numbers& evaluations) const;

  /// Removes the folder of begin(). Never throws, because the disk may be full.
  void discard(std::int64_t step) const noexcept;

  /// Removes a checkpoint. At no time is a part of it visible under its name. Throws WriteError.
  void remove(std::int64_t step) const;

  /// Moves a checkpoint to set-aside/ and returns its new path. Throws WriteError.
  std::filesystem::path set_aside(std::int64_t step) const;

  /// Removes the remains of checkpoints that a killed program was writing or removing. Throws
  /// WriteError.
  void clear_leftovers() const;

 private:
  std::filesystem::path temporary(std::int64_t step, std::string_view doing) const;

  std::filesystem::path path_;
};

/// Throws CheckpointDamaged naming `file` if `bytes` differ from what was saved.
void check_saved(std::string_view bytes, const CheckpointFile& expected, const std::string& file);

/// The text of data.json in the checkpoint in `folder`; nothing if it has none, or if there is no
/// readable checkpoint. Throws CheckpointDamaged if the text differs from what was saved.
std::optional<std::string> data_in_checkpoint(const std::filesystem::path& folder);

/// The output folder of the run to which a checkpoint belongs; empty if the checkpoint does not
/// exist, as it may on the machine of another worker.
std::filesystem::path run_of_checkpoint(const std::filesystem::path& checkpoint);

/// "step-00000500", and the step in such a name; -1 in any other.
std::string checkpoint_name(std::int64_t step);
std::int64_t step_in_name(std::string_view name);

}  // namespace decent
