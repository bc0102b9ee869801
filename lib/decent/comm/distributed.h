#pragma once
// Process start-up in one call, for programs with a training loop of their own:
//
//     auto workers = decent::initialize_distributed();
//     decent::DecentralizedDataParallel model(net, workers.communicator(), {..});

#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "decent/comm/communicator.h"
#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/comm/world.h"

namespace decent {

struct DistributedOptions {
  /// How long a peer may be silent, also before it has shown up.
  std::chrono::duration<double> timeout{60};
  /// Called once, in a thread of its own, when another worker was lost or failed, as the caller of
  /// this library may be waiting for it; `reports` on the one worker that should tell the user.
  /// By default prints the message there and ends the process with the failure's exit code (3 for
  /// a lost worker).
  std::function<void(const Failure&, bool reports)> on_failure = nullptr;
  /// Automatic: a GPU where every worker of the machine has one of its own, with NCCL between them;
  /// else the CPU, with gloo. See choose_device().
  DeviceWish device = DeviceWish::automatic;
  BackendWish backend = BackendWish::automatic;
};

/// This process among the workers of a run. Destroyed in order it says goodbye; by an exception, or
/// with the process, the others take it for lost.
class Distributed {
 public:
  Distributed(const Launch& launch, const DistributedOptions& options);
  ~Distributed();
  Distributed(const Distributed&) = delete;
  Distributed& operator=(const Distributed&) = delete;

  /// Who trains together, for samplers.
  const Membership& membership() const { return world_.membership(); }

  int rank() const { return launch_.rank; }
  int world_size() const { return launch_.world_size; }
  int local_rank() const { return launch_.local_rank; }
  int local_world_size() const { return launch_.local_world_size; }
  bool main_worker() const { return launch_.rank == 0; }

  /// Where this worker's model and batches belong. A GPU is the current one of the thread that made
  /// this object.
  c10::Device device() const { return choice_.device; }
  /// What carries tensors between workers: "gloo", "nccl", or "none" for a single worker.
  std::string_view backend() const {
    return launch_.world_size == 1 ? "none" : backend_name(choice_.backend);
  }

  /// All workers, connected with each other.
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  /// Heartbeats, failures, and stopping together after the same step; with
  /// on_launcher_end(LauncherEnd::stop) also when torchrun has ended.
  Control& control() { return world_.control(); }

 private:
  Launch launch_;
  World world_;
  DeviceChoice choice_;
  std::shared_ptr<Communicator> communicator_;
  int exceptions_;  // in flight at the start
};

/// Reads the launcher's variables (see read_launch; with none of them set this is the only worker),
/// picks device and backend, and connects the workers. Comes before all that asks LibTorch for
/// CUDA, as torch::manual_seed does. c10d's own warnings are silenced, and SIGPIPE is ignored where
/// it had its default. Collective. Throws UserError for variables that are missing or make no
/// sense, SharedError where a device cannot be had, PeerLost where a worker cannot be reached.
Distributed initialize_distributed(const DistributedOptions& options = {});

}  // namespace decent
