#pragma once
// Saving checkpoints: all workers at the same step, each its own replica, and one of those that
// share a folder the manifest.
//
// A save is a copy of the state in memory, made by the training thread, and the writing of it,
// which may go on in a thread beside training:
//   1. every worker makes its file durable in a temporary folder, and tells the others its checksum
//   2. of the workers that share a folder, the lowest rank writes the manifest and renames
//   3. once that is done everywhere, the same ones remove what need not be kept
//      (where an evaluation of the step follows: once its figures are in the manifests)
// A checkpoint is thus never seen on one machine before all replicas are durable on theirs, and
// none is removed before a newer one is.
//
// Where copies are alike, only that lowest rank writes parameters and optimizer state, and the
// others of the folder what is their own.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/manifest.h"
#include "decent/comm/team.h"
#include "decent/config/recipe.h"
#include "decent/resume/replica_image.h"

namespace decent {

struct CheckpointerOptions {
  Team team;                       // whose agreements the writing thread uses, too
  std::vector<int> leaders = {0};  // by rank: the lowest of those that share its folder
  bool copies_alike = false;       // all workers have the same parameters and optimizer states
  CheckpointFolder folder;         // as this worker sees it
  CheckpointRecipe recipe = {};
  bool higher_is_better = false;  // of recipe.keep_best
  Manifest manifest = {};         // what all checkpoints of the run have in common
  std::string data = {};          // what data.json of each of them says; empty: there is none
  /// Makes durable what must be before a checkpoint appears; called by the writing thread.
  std::function<void()> before_publishing = [] {};
};

/// Threads: used by the training thread; has at most one writing thread.
class Checkpointer {
 public:
  explicit Checkpointer(CheckpointerOptions options);
  /// Waits for the writing thread.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// What only this checkpoint has: whose replicas it holds, step, place in the data, evaluation.
  struct Progress {
    Membership workers = {};  // replica p is that of the worker at place p
    std::int64_t step = 0;
    std::int64_t epoch = 0;
    std::int64_t consumed = 0;
    double epochs_done = 0;
    Numbers metrics = {};
    bool evaluation_pending = false;  // see Manifest
    Numbers evaluations = {};         // what the run remembers of all of them
  };

  /// Saves `state`, once the save before is done; in the background where the recipe says so and
  /// `in_background`. Collective. Throws what went wrong with this worker's part of the save
  /// before, or of this one where it is done: WriteError, Error with ExitCode::diverged for a
  /// parameter that is not finite. What went wrong with another worker's part is for that one to
  /// throw.
  void save(const Progress& progress, const NamedTensors& state, bool in_background = true);

  /// Adds the evaluation of its step to the last checkpoint, which was saved without; in the
  /// background as save() is. Collective. Throws as save() does.
  void note_evaluation(const Numbers& metrics, const Numbers& evaluations,
                       bool in_background = true);

  /// Throws what went wrong with this worker's part of the last save, where that is known already.
  void check();

  /// Waits for the save under way and does the same.
  void wait();

  /// How long the last save took that is done, copy and writing; nothing before there is one.
  std::optional<double> take_seconds();

  /// The step of the last checkpoint that was begun, or that stands in the folder already; -1
  /// without one.
  std::int64_t last_step() const { return last_step_; }
  void note_existing(std::int64_t step) { last_step_ = step; }

 private:
  using Clock = std::chrono::steady_clock;
  int leader_of(int rank) const { return options_.leaders.at(static_cast<std::size_t>(rank)); }
  bool leads() const;
  void start(bool in_background, const std::function<void()>& work);
  void keep_failure() noexcept;
  void write(const Progress& progress, Clock::time_point begin);
  void amend(std::int64_t step, const Numbers& metrics, const Numbers& evaluations);
  std::optional<Manifest> write_replicas(const Progress& progress);
  CheckpointFile write_own(const Progress& progress);
  bool publish(const Manifest& manifest);
  template <typename Stage>
  auto keeping_failure(Stage stage);
  std::string stage_name(const std::string& stage) const;

  CheckpointerOptions options_;
  ReplicaImage image_;
  std::thread thread_;
  std::int64_t saves_ = 0;
  std::int64_t last_step_ = -1;
  std::mutex mutex_;  // guards what follows
  std::exception_ptr failure_;
  std::optional<double> seconds_;
};

}  // namespace decent
