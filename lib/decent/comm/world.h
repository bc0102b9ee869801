#pragma once
// All workers of a run: how they find and reach one another, and how they agree on the outcome of a
// stage, so that a mistake that all of them see is reported once and all of them leave together.

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

class Rendezvous;

struct WorldOptions {
  /// How long a peer may be silent, in seconds. The same time is allowed for connecting.
  std::chrono::duration<double> timeout{60};
  std::string timeout_setting = "timeout";  // the user's name for it, in messages
  /// Makes an outcome of an error that carries no exit code.
  Explain explain = as_bug;
  /// See ControlOptions.
  std::function<void(const Failure&, bool reports)> on_failure;
  LauncherWatch launcher = {};
};

class World {
 public:
  /// Finds the other workers through the launcher's store and connects the control planes.
  /// Collective. Throws PeerLost if the store or a worker cannot be reached, SharedError if a
  /// worker is of another build or has no address that others can reach.
  World(const Launch& launch, WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Control& control() { return *control_; }

  const Launch& launch() const { return launch_; }

  /// The ranks that train together: today every worker that was started, for the whole run.
  const Membership& membership() const { return membership_; }
  /// This worker among them.
  Member member() const {
    Member member = launch_.member();
    member.workers = membership_;
    return member;
  }

  /// Runs a stage on every worker. Either it succeeds on all of them, and the results of all are
  /// returned by rank, or all throw the same SharedError. Calls are matched by `name` and order
  /// (Control::gather carries them). Collective. See Agreement for this and the next two. The
  /// templates are defined in gather.h; values are of types that nlohmann::json converts.
  void agree(const std::string& name, const std::function<void()>& stage);
  template <StageWithValue Stage>
  std::vector<ValueOf<Stage>> agree(const std::string& name, Stage stage);

  /// The same for a stage whose failure does not end the run: returns the outcomes by rank.
  std::vector<Outcome> attempt(const std::string& name, const std::function<void()>& stage);
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt(const std::string& name, Stage stage);

  /// attempt() among the workers that are left in a farewell (Control::begin_farewells). Lost ones
  /// have the outcome peer_lost.
  template <StageWithValue Stage>
  std::vector<Attempt<ValueOf<Stage>>> attempt_of_survivors(const std::string& name, Stage stage);

  /// All-gather: every worker gives a value and gets the values of all, by rank.
  template <typename T>
  std::vector<T> gather(const std::string& name, const T& own);

  /// The worker that tells the user how the run ends: rank 0, or the lowest one that is left.
  int speaker() const;
  /// Returns at once on the speaker. On the others it returns when that has left, or after some
  /// seconds. Launchers end all workers when the first one exits, and the speaker must have time to
  /// print why.
  void leave_after_speaker();

  /// Finds out which workers see GPUs that no other worker sees, because a launcher shows each
  /// worker its own (Launch::own_gpus, parts_of_gpus). `wanted`: whether this worker may use a GPU;
  /// otherwise it looks at none. Collective. Call it before a device is chosen.
  void compare_gpus(bool wanted);

  /// Connects all workers with each other, for tensors on `choice`'s device and on the CPU, and
  /// completes `choice`: who shares memory, or why workers that should share it cannot, and the
  /// backend if it depends on the network. Destroy the communicator before this object. Collective.
  /// Throws SharedError if workers chose different backends. If GPUs cannot be connected, also
  /// later (subgroup()), the run fails on all workers: at once if a worker has an error, after
  /// `WorldOptions::timeout` if nothing happens.
  std::shared_ptr<Communicator> communicator(DeviceChoice& choice);

 private:
  void meet(WorldOptions options);
  void start_control(std::vector<std::string> hosts, std::vector<Socket> connections,
                     WorldOptions options);
  std::vector<std::string> bytes_of_survivors(const std::string& name, std::string own);
  std::vector<int> ranks_of_machine() const;
  void find_place();
  std::shared_ptr<Communicator> share_memory_here(DeviceChoice& choice);
  std::shared_ptr<Communicator> connect_by_gloo();
  std::shared_ptr<Communicator> connect_gpus(const DeviceChoice& choice,
                                             std::shared_ptr<Communicator> host);
  std::shared_ptr<Communicator> connect_by_nccl(const std::string& name,
                                                const std::shared_ptr<Communicator>& host);
  void connecting_gpus(const std::function<void()>& step);
  void fail(const Outcome& outcome);

  Launch launch_;
  Membership membership_;
  Agreement agreement_;  // over the control plane
  Agreement survivors_;  // the same among the workers that are left in a farewell
  std::string address_;  // this machine's, for other workers
  std::chrono::duration<double> timeout_;
  std::string timeout_setting_;
  std::vector<std::string> machines_;       // host_identity() by rank
  std::unique_ptr<Rendezvous> rendezvous_;  // null for a single worker
  std::unique_ptr<Control> control_;
};

}  // namespace decent
