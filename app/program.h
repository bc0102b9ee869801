#pragma once
// What all commands of the program share.

#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "decent/comm/launch.h"
#include "decent/comm/team.h"
#include "decent/config/recipe.h"
#include "decent/resume/starting_point.h"
#include "decent/runfolder/log.h"
#include "decent/runfolder/output_lock.h"
#include "decent/train/trainer.h"
#include "flags.h"

namespace decent {

/// The result of a function, or its error, which is kept until it can be shared with all workers:
/// before they are connected, an error cannot be told to the others yet.
template <typename T>
class Deferred {
 public:
  Deferred() = default;
  template <typename Function>
  explicit Deferred(Function function) {
    try {
      value_ = function();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  /// The result; throws the error.
  const T& get() const {
    if (error_) std::rethrow_exception(error_);
    return value_.value();
  }

  /// Null if there was an error.
  const T* get_if() const { return value_ ? &*value_ : nullptr; }

 private:
  std::optional<T> value_;
  std::exception_ptr error_;
};

// Lives outside of the try block: after an error, nothing may be destroyed that still has work
// under way with peers.
struct Program {
  Flags flags;
  Deferred<Recipe> recipe;  // of --config and --set
  Launch launch;
  std::optional<Log> log;
  std::unique_ptr<World> world;
  std::unique_ptr<Trainer> trainer;
  std::string session;  // random, the same on all workers
  std::unique_ptr<OutputLock> lock;
  // For the control thread; null until there is a lock to remove or a run whose end to note.
  std::atomic<OutputLock*> locked = nullptr;
  std::atomic<Trainer*> training = nullptr;

  bool main_worker() const { return launch.rank == 0; }
};

/// The outcome of an error that is not one of this program's own: a device error if the user can do
/// something about it, else a bug. `verbose`: include the whole text of the error.
Outcome outcome_of(const std::exception& error, bool verbose = false);

/// Takes the lock of the output folder for the workers of this run, before anything in it is
/// touched; one worker of each machine holds it. Throws SharedError if another run has it, or if
/// `for_new_run` and the folder holds a run already. Collective.
void lock_output(Program& program, const std::filesystem::path& folder, bool for_new_run);

/// Tells `decent-train --workers`, if it started this worker, what has come (comm/launch.h).
void tell_supervisor(const Launch& launch, char what);

/// Connects all workers for tensors on the device of `task`. The timeout in its recipe counts from
/// now on. The team must live until all workers have theirs: a worker that closes a connection
/// early is taken for lost. Collective.
Team connect(World& world, Task& task);

/// Prepares the run of the recipe on every worker, and checks that all prepare the same run.
/// Collective. Throws SharedError.
Run prepare_run_together(Program& program);

/// The task of an evaluation, or of a command that only reads and writes models.
struct TriedTask {
  Task task;
  Trial trial;
};
TriedTask prepare_task_together(Program& program, Purpose purpose);

/// The context for resuming the run of `task`, which must outlive the context.
ResumeContext resume_context(Program& program, const Team& team, const Task& task);

/// Finds the checkpoint of --resume, plans `run` anew from there, and decides what its workers
/// begin with; nothing if `auto` finds no checkpoint, so that `run` is planned to start afresh.
/// Collective. Throws SharedError.
std::optional<StartingPoint> find_start(Program& program, const Team& team, Run& run);

}  // namespace decent
