#pragma once
// The output folder of a run.

#include <filesystem>

namespace decent {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  /// Throws UserError naming both ways out where the folder holds a run already (recipe.yaml,
  /// metrics.jsonl or checkpoints/), or is not a folder. Writes nothing.
  void check_free() const;

  /// Whether the folder holds a run; see check_free().
  bool holds_run() const;

  /// Keeps metrics and models that a run leaves behind: moves the models, copies metrics.jsonl, to
  /// a new folder set-aside/1, set-aside/2, .., whose path it returns; empty where there is nothing
  /// to keep. Throws WriteError.
  std::filesystem::path set_aside() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path recipe() const { return path_ / "recipe.yaml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path log() const { return path_ / "run.log"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path model() const { return path_ / "model.pt"; }
  std::filesystem::path weights() const { return path_ / "model.safetensors"; }
  std::filesystem::path lock() const { return path_ / ".lock"; }  // see output_lock.h
  std::filesystem::path trace(int rank) const;                    // every worker writes its own

 private:
  std::filesystem::path path_;
};

}  // namespace decent
