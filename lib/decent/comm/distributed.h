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
  /// How long a peer may be silent, in seconds. The same time is allowed for connecting.
  std::chrono::duration<double> timeout{60};
  /// Called once when another worker was lost or failed, in a thread of the library, because the
  /// caller's thread may be waiting for that worker. `reports` is true on the one worker that
  /// should tell the user. By default that worker prints the message, and every process ends with
  /// the failure's exit code (3 for a lost worker).
  std::function<void(const Failure&, bool reports)> on_failure = nullptr;
  /// Automatic: a GPU with NCCL if every worker of the machine can have a GPU of its own, else the
  /// CPU, with shared memory between workers of one machine (the same boot, user, and namespaces of
  /// processes and of the network) and gloo between machines. See choose_device().
  DeviceRequest device = DeviceRequest::automatic;
  BackendRequest backend = BackendRequest::automatic;
};

/// Call it when a worker has done its part. Waits until its device has completed all work and all
/// other workers have called this, then tells them that it leaves. Does not wait if the run has
/// failed. Collective.
void leave_together(Communicator& communicator, Control& control);

/// This process among the workers of a run. Its destructor is leave_together(). If it is destroyed
/// by an exception, or the process dies, the others treat this worker as lost.
class Distributed {
 public:
  Distributed(const Launch& launch, const DistributedOptions& options);
  ~Distributed();
  Distributed(const Distributed&) = delete;
  Distributed& operator=(const Distributed&) = delete;

  /// This worker among those that train together, for samplers.
  Member member() const { return world_.member(); }

  int rank() const { return world_.launch().rank; }
  int world_size() const { return world_.launch().world_size; }
  int local_rank() const { return world_.launch().local_rank; }
  int local_world_size() const { return world_.launch().local_world_size; }
  /// A number by rank, the same for workers of one machine (Launch::machines).
  const std::vector<int>& machines() const { return world_.launch().machines; }
  bool main_worker() const { return world_.launch().rank == 0; }

  /// The device for this worker's model and batches. A GPU is the current one of the thread that
  /// made this object.
  c10::Device device() const { return choice_.device; }
  /// What carries tensors between workers: see carrier_name(). "none" for a single worker.
  std::string_view backend() const {
    return world_.launch().world_size == 1 ? "none" : carrier_name(choice_);
  }
  /// Why workers of one machine exchange by gloo although they were to share memory; else empty.
  const std::string& sharing_problem() const { return choice_.sharing_problem; }

  /// The group of all workers.
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }
  /// Heartbeats, failures, and stopping after the same step on all workers (after
  /// on_launcher_end(LauncherEnd::stop) also when torchrun ends).
  Control& control() { return world_.control(); }

 private:
  World world_;
  DeviceChoice choice_;
  std::shared_ptr<Communicator> communicator_;
  int exceptions_;  // in flight at the start
};

/// Reads the launcher's variables (see read_launch; without them this is the only worker), chooses
/// device and backend, and connects the workers, as torch.distributed.init_process_group does. Call
/// it before anything that asks LibTorch for CUDA, such as torch::manual_seed. It silences c10d's
/// own warnings, and ignores SIGPIPE if that had its default action. Collective. Throws UserError
/// for variables that are missing or invalid, SharedError if a device is not available, PeerLost if
/// a worker cannot be reached.
Distributed initialize_distributed(const DistributedOptions& options = {});

}  // namespace decent
