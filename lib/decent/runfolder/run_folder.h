#pragma once
// The output folder of a run.

#include <filesystem>
#include <string_view>
#include <vector>

namespace decent {

/// The averaged models that a run leaves: at its end, and of its best checkpoint.
enum class RunModel { last, best };

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  /// Throws UserError if the folder already holds a run (recipe.yaml, metrics.jsonl or
  /// checkpoints/), naming both ways out, or if it is not a folder. Writes nothing.
  void check_free() const;

  /// Whether the folder holds a run; see check_free().
  bool holds_run() const;

  /// Keeps the metrics and models of a run before it goes back to an earlier checkpoint: moves the
  /// models and copies metrics.jsonl and run.json to a new folder set-aside/1, set-aside/2, ..
  /// Returns its path, or an empty one if there is nothing to keep. Throws WriteError.
  std::filesystem::path set_aside() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path recipe() const { return path_ / "recipe.yaml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path log() const { return path_ / "run.log"; }
  std::filesystem::path run() const { return path_ / "run.json"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path model() const { return model(RunModel::last, ".pt"); }
  std::filesystem::path model(RunModel which, std::string_view extension) const;
  /// What trained under model.lora.
  std::filesystem::path adapters(RunModel which) const;
  /// The same as PEFT reads it: a folder.
  std::filesystem::path peft(RunModel which) const;
  /// The files of models that a run may write, in all formats.
  std::vector<std::filesystem::path> models() const;
  /// What the run has learned of its training data; see data/learned.h.
  std::filesystem::path data() const { return path_ / "data.json"; }
  std::filesystem::path classes() const { return path_ / "classes.json"; }
  std::filesystem::path class_scores() const { return path_ / "eval-classes.csv"; }
  std::filesystem::path confusion() const { return path_ / "eval-confusion.csv"; }
  std::filesystem::path skipped() const { return path_ / "skipped.jsonl"; }
  std::filesystem::path lock() const { return path_ / ".lock"; }  // see output_lock.h
  std::filesystem::path trace(int rank) const;                    // every worker writes its own

 private:
  std::filesystem::path path_;
};

}  // namespace decent
