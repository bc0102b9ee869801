#pragma once
// What a training run consists of on this worker.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "decent/comm/team.h"
#include "decent/core/trace.h"
#include "decent/parallel/trained_parameters.h"
#include "decent/report/reporter.h"
#include "decent/resume/folder_leaders.h"
#include "decent/runfolder/log.h"
#include "decent/runfolder/run_folder.h"
#include "decent/train/plan.h"

namespace decent {

struct SessionOptions {
  std::string run_id;  // of the whole run, for its checkpoints
  FolderLeaders leaders = {};
  /// Whether torchrun started this worker; see StopTime.
  bool torchrun = false;
  /// Called at each line of the metrics and each save; throws if the output folder does not belong
  /// to the run any more.
  std::function<void()> check_folder = [] {};
  /// Called by a worker that leads in its folder after another one was lost; throws if the folder
  /// belongs to another run.
  std::function<void()> take_folder = [] {};
  /// Called once, by every worker.
  std::function<void()> first_step_done = [] {};
};

/// Made once, from the task and the plan of `run`, the team and the files of the output folder. All
/// parts of the training loop are given it.
struct Session {
  /// The output folder exists on every worker. `its_log` must outlive the session. Collective.
  Session(Run its_run, Team its_team, Log& its_log, SessionOptions its_options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Recipe& recipe() const { return run.task.recipe; }
  /// Updates done so far, in the whole run.
  std::int64_t step() const { return parallel->step(); }
  double epoch() const { return run.plan.sampler->epochs_done(step()); }
  /// Call it before writing to the output folder: throws if that does not belong to the run any
  /// more, and does not return if the other workers have given this one up.
  void check_writable() const {
    team.control().catch_up();
    options.check_folder();
  }
  /// Whether no step follows, as planned or because of an evaluation.
  bool is_done() const { return step() >= run.plan.total_steps || run.plan.rules.stops(); }

  Run run;
  Team team;
  Log& log;
  SessionOptions options;
  RunFolder folder;
  std::shared_ptr<Trace> trace;        // null if no step of this run is traced
  std::unique_ptr<Reporter> reporter;  // null except on the worker that speaks
  /// How long a farewell may take; nothing if a loss ends the run.
  std::optional<std::chrono::duration<double>> farewell;
  std::unique_ptr<TrainedParameters> parallel;
};

}  // namespace decent
