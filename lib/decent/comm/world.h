#pragma once
// All workers of a run before and around training: the store through which they meet, and agreement
// at the stages of starting up, so that a mistake that all of them see is reported once and all of
// them leave together.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/comm/control.h"
#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/core/error.h"

namespace decent {

/// How one worker came out of a stage.
struct Outcome {
  ExitCode code = ExitCode::done;
  std::string message;
};

/// Throws what a stage of all workers came to: nothing where all are done, else a SharedError with
/// the first failed worker's code. Where not all failed alike, it names the
/// ranks that it is about.
void throw_if_failed(const std::vector<Outcome>& outcomes);

/// c10d warns, with C++ stack traces, of what this program tells in its own words.
/// TORCH_CPP_LOG_LEVEL in the environment counts where it is set. Before the first World.
void silence_c10d_warnings();

struct WorldOptions {
  /// How long a peer may be silent, also before it has shown up.
  std::chrono::duration<double> timeout{60};
  /// See ControlOptions.
  std::function<void(const Failure&, bool reports)> on_failure;
};

class World {
 public:
  /// Meets the other workers at the launcher's store and connects their control planes. Collective.
  /// Throws PeerLost where the store or a worker cannot be reached, SharedError where a worker is
  /// of another build or has no address that others can reach.
  World(const Launch& launch, WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Control& control() { return *control_; }

  /// Every worker tells how the stage `name` went for it and learns how it went for all, in the
  /// order of ranks. Collective; waits for as long as the others are alive. Throws PeerLost where
  /// the store is lost.
  std::vector<Outcome> share(const std::string& name, const Outcome& own);

  /// Returns once rank 0 has called it too, or after some seconds: launchers end all workers when
  /// the first one exits, and rank 0 is the one that tells the user why.
  void leave_after_rank_0();

  /// Connects all workers with each other, for tensors on `choice`'s device and on the CPU. What it
  /// returns is dropped before this object. Collective. Throws SharedError where workers chose
  /// different backends.
  std::shared_ptr<Communicator> communicator(const DeviceChoice& choice = {});

 private:
  struct Stores;
  void meet(WorldOptions options);
  std::vector<Outcome> share_within(const std::string& name, const Outcome& own,
                                    std::chrono::milliseconds patience);

  Launch launch_;
  std::string address_;             // this machine's, for other workers
  std::unique_ptr<Stores> stores_;  // null for a single worker
  std::unique_ptr<Control> control_;
};

}  // namespace decent
