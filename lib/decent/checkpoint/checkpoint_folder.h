#pragma once
// The folder checkpoints/ of a run. A checkpoint in it is whole or absent: it is written under a
// temporary name, made durable, and renamed.
//
//     step-00000500/              a checkpoint
//     .step-00000600.writing/     one that is being written, or was when the program was killed
//     .step-00000100.removing/    one that is being removed, likewise
//     set-aside/step-00000700/    one that a resumed run left out: later than where it went on
//
// Nothing here talks to other workers: those that share a folder agree on who does what.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/checkpoint/manifest.h"

namespace decent {

class CheckpointFolder {
 public:
  /// Needs not exist.
  explicit CheckpointFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path path_of(std::int64_t step) const;

  /// Steps of everything that stands here under a checkpoint's name, highest first.
  std::vector<std::int64_t> steps() const;

  /// Calls `visit` for each of them whose manifest can be read, highest first; the others are
  /// passed over.
  void visit_manifests(
      const std::function<void(std::int64_t step, const Manifest& manifest)>& visit) const;

  /// Steps of checkpoints that were being written and never got their name, and where they are.
  std::vector<std::int64_t> steps_being_written() const;
  std::filesystem::path writing_path_of(std::int64_t step) const;

  /// The folder that the files of a checkpoint are written to, made where it is not there yet.
  /// Throws WriteError.
  std::filesystem::path begin(std::int64_t step) const;

  /// Writes the manifest beside them, makes the folder durable and gives it its name. One of the
  /// same step that is there already is replaced. Throws WriteError.
  void publish(const Manifest& manifest) const;

  /// Forgets what begin() began. Never throws: it may be a full disk that is being left.
  void discard(std::int64_t step) const noexcept;

  /// Removes a checkpoint, so that at no moment a part of it stands under its name. Throws
  /// WriteError.
  void remove(std::int64_t step) const;

  /// Moves a checkpoint to set-aside/, and gives the new place. Throws WriteError.
  std::filesystem::path set_aside(std::int64_t step) const;

  /// Removes what a killed program left of checkpoints that it was writing or removing. Throws
  /// WriteError.
  void clear_leftovers() const;

 private:
  std::filesystem::path temporary(std::int64_t step, std::string_view doing) const;

  std::filesystem::path path_;
};

/// "step-00000500", and the step in such a name; -1 in any other.
std::string checkpoint_name(std::int64_t step);
std::int64_t step_in_name(std::string_view name);

}  // namespace decent
