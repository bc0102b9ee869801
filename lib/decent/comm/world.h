#pragma once
// All workers of a run before and around training: how they meet, and what all tell all, so that a
// mistake that all of them see is reported once and all of them leave together.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "decent/comm/agreement.h"
#include "decent/comm/communicator.h"
#include "decent/comm/control/control.h"
#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/comm/socket.h"
#include "decent/core/membership.h"

namespace decent {

class Meeting;

/// c10d warns, with C++ stack traces, of what this program tells in its own words.
/// TORCH_CPP_LOG_LEVEL in the environment counts where it is set. Before the first World.
void silence_c10d_warnings();

struct WorldOptions {
  /// How long a peer may be silent, also before it has shown up.
  std::chrono::duration<double> timeout{60};
  std::string timeout_setting = "timeout";  // what messages call it
  /// The words for errors of stages that carry no exit code.
  Explain explain = as_bug;
  /// See ControlOptions.
  std::function<void(const Failure&, bool reports)> on_failure;
  Socket launcher = {};
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

  const Launch& launch() const { return launch_; }

  /// Who trains together: so far all workers that were started, for the whole run.
  const Membership& membership() const { return membership_; }

  /// Runs a stage on every worker; all of them go on, with what it gave on each, by rank, or all
  /// throw the same SharedError. See Agreement for this and the next two, and Control::gather for
  /// what carries them: calls are matched by `name` and order. Collective. The templates are
  /// defined in gather.h; values are what nlohmann::json converts.
  void agree(const std::string& name, const std::function<void()>& stage);
  template <StageWithValue Stage>
  std::vector<ValueOf<Stage>> agree(const std::string& name, Stage stage);

  /// The same for a stage whose failure does not end the run: how it went on each, by rank.
  std::vector<Outcome> attempt(const std::string& name, const std::function<void()>& stage);
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt(const std::string& name, Stage stage);

  /// Every worker gives a value of its own and gets what all have given, by rank.
  template <typename T>
  std::vector<T> gather(const std::string& name, const T& own);

  /// Returns on rank 0 at once, elsewhere once rank 0 has left, or after some seconds: launchers
  /// end all workers when the first one exits, and rank 0 is the one that tells the user why.
  void leave_after_rank_0();

  /// Connects all workers with each other, for tensors on `choice`'s device and on the CPU. What it
  /// returns is dropped before this object. Collective. Throws SharedError where workers chose
  /// different backends.
  std::shared_ptr<Communicator> communicator(const DeviceChoice& choice = {});

 private:
  void meet(WorldOptions options);
  void start_control(std::vector<std::string> hosts, std::vector<Socket> connections,
                     WorldOptions options);

  Launch launch_;
  Membership membership_;
  Agreement agreement_;               // over the control plane
  std::string address_;               // this machine's, for other workers
  std::unique_ptr<Meeting> meeting_;  // null for a single worker
  std::unique_ptr<Control> control_;
};

}  // namespace decent
