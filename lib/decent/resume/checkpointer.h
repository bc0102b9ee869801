#pragma once
// Saving checkpoints. All workers save at the same step: each writes its own replica, and one
// worker of each shared folder writes the manifest.
//
// The training thread copies the state in memory; writing the copy may go on in a thread beside
// training:
//   1. every worker makes its file durable in a temporary folder, and tells the others its checksum
//   2. of the workers that share a folder, the lowest rank writes the manifest and renames
//   3. once that is done everywhere, the same workers remove checkpoints that need not be kept
//      (if an evaluation of the step follows: once its figures are in the manifests)
// So a checkpoint appears on no machine before all replicas are durable on theirs, and none is
// removed before a newer one is durable.
//
// If copies are alike, only that lowest rank writes parameters and optimizer state; the other
// workers of the folder write only what is their own.

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/manifest.h"
#include "decent/comm/team.h"
#include "decent/config/recipe.h"
#include "decent/resume/folder_leaders.h"
#include "decent/resume/history.h"
#include "decent/resume/replica_image.h"

namespace decent {

struct CheckpointerOptions {
  Team team;  // the writing thread uses its agreements, too
  FolderLeaders leaders = {};
  bool copies_alike = false;  // all workers have the same parameters and optimizer states
  CheckpointFolder folder;    // as this worker sees it
  CheckpointRecipe recipe = {};
  bool higher_is_better = false;  // of the metric recipe.keep_best
  Manifest manifest = {};         // what all checkpoints of the run have in common
  std::string data = {};          // the data.json of each of them; empty: there is none
  /// The run's metrics in this worker's folder. Where machines have folders of their own, all of
  /// them have the lines up to a checkpoint before it appears (history.h).
  std::filesystem::path metrics = {};
  /// Makes other files durable before a checkpoint appears; called by the writing thread.
  std::function<void()> before_publishing = [] {};
};

/// Removes the checkpoints that `keep` and `keep_best` do not ask for. `higher_is_better`: of the
/// metric `keep_best`. One of the workers that share the folder calls it, once a newer checkpoint
/// is durable everywhere. Throws WriteError.
void prune_checkpoints(const CheckpointFolder& folder, const CheckpointRecipe& recipe,
                       bool higher_is_better);

/// What one worker has made durable for a checkpoint.
struct WrittenPart {
  CheckpointFile file;
  AddedLines lines;  // of the worker that speaks
};

/// Threads: used by the training thread; has at most one writing thread.
class Checkpointer {
 public:
  explicit Checkpointer(CheckpointerOptions options);
  /// Waits for the writing thread.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// The facts of one checkpoint: whose replicas it holds, step, place in the data, evaluation.
  struct Progress {
    Membership workers = {};  // replica p is that of the worker at place p
    std::int64_t step = 0;
    std::int64_t epoch = 0;
    std::int64_t consumed = 0;
    double epochs_done = 0;
    Numbers metrics = {};
    bool evaluation_pending = false;     // see Manifest
    Numbers evaluations = {};            // what the run remembers of all its evaluations
    std::optional<double> lost_at = {};  // of a farewell: see Manifest
  };

  /// Saves `state`, once the previous save is done; in the background if both the recipe and
  /// `in_background` say so. Collective. Throws the error of this worker's part of the previous
  /// save, or of this save if it is done: WriteError, or Error with ExitCode::diverged for a
  /// parameter that is not finite. Each worker throws only the errors of its own part.
  void save(const Progress& progress, const NamedTensors& state, bool in_background = true);

  /// Adds the evaluation of its step to the last checkpoint, which was saved before it; in the
  /// background under the same conditions as save(). Collective. Throws as save() does.
  void note_evaluation(const Numbers& metrics, const Numbers& evaluations,
                       bool in_background = true);

  /// Saves `state` with the other workers that are left in a farewell (Control::begin_farewells); a
  /// save under way is given up. Every file is whole. In a folder whose leader is lost, the lowest
  /// worker that is left leads, and calls `take_folder` before anything is written. Workers that
  /// cannot write are left out. Should these turn out to be the smaller part of a run that was cut
  /// in two, they publish nothing. If that step was saved already, with the files of the lost
  /// workers where others can read them, nothing is written. Returns why there is no checkpoint of
  /// the step now; nothing if there is one. Collective among the workers that are left.
  std::optional<std::string> save_of_survivors(const Progress& progress, const NamedTensors& state,
                                               const std::function<void()>& take_folder);

  /// Throws the error of this worker's part of the last save, if one is known already.
  void check();

  /// Waits for the save under way, then calls check().
  void wait();

  /// How long the last finished save took, copying and writing; nothing before the first, or if it
  /// was taken already.
  std::optional<double> take_seconds();

  /// The step of the last checkpoint that was begun or is in the folder already; -1 if none.
  std::int64_t last_step() const { return last_step_; }
  void note_existing(std::int64_t step) { last_step_ = step; }

 private:
  using Clock = std::chrono::steady_clock;
  bool leads() const { return options_.leaders.leads(options_.team); }
  void start(bool in_background, const std::function<void()>& work);
  void keep_failure() noexcept;
  void write(const Progress& progress, Clock::time_point begin);
  void amend(std::int64_t step, const Numbers& metrics, const Numbers& evaluations);
  std::optional<Manifest> write_replicas(const Progress& progress);
  Manifest manifest_of(const Progress& progress) const;
  bool saves() const;
  void discard_as_survivor(std::int64_t step) const;
  Manifest manifest_of_survivors(const Progress& progress,
                                 const std::vector<Attempt<WrittenPart>>& written) const;
  std::optional<std::string> publish_with_survivors(const Manifest& manifest, bool folder_is_ready);
  bool publish_as_survivor(Manifest manifest, const std::set<int>& lost);
  bool is_complete_without(const std::set<int>& lost, std::int64_t step) const;
  bool is_saved_without(const std::set<int>& lost, std::int64_t step) const;
  WrittenPart write_own(const Progress& progress);
  bool publish(const Manifest& manifest);
  AddedLines new_lines();
  void keep_lines() const;
  template <typename Stage>
  auto keeping_failure(Stage stage);
  std::string stage_name(const std::string& stage) const;

  CheckpointerOptions options_;
  ReplicaImage image_;
  std::thread thread_;
  std::int64_t saves_ = 0;
  std::int64_t published_step_ = -1;  // of the last save that all workers have completed
  std::uint64_t given_;               // bytes of the metrics that all folders have
  AddedLines lines_;                  // those that are to follow before the next checkpoint appears
  std::int64_t last_step_ = -1;
  std::mutex mutex_;  // guards the members below
  std::exception_ptr failure_;
  std::optional<double> seconds_;
};

}  // namespace decent
