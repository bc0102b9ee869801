#pragma once
// GPUs of this process, and what carries their tensors between workers. All of it is in the shared
// library of core/cuda_library.h; these functions load it, and throw what it says where they cannot
// (UserError).

#include <functional>
#include <memory>
#include <string>

#include "decent/comm/communicator.h"

namespace c10d {
class Store;
}

namespace decent {

/// The GPUs that this process may use (CUDA_VISIBLE_DEVICES), by number.
struct CudaDevices {
  int count = 0;
  std::string problem = {};  // why there is none, e.g. built without CUDA, no driver
  /// Whether there seems to be a GPU, so that one who did not ask for it may want to know the
  /// problem.
  bool unexpected = false;
};
/// Does not throw. The library is loaded only where the machine has NVIDIA's driver and
/// CUDA_VISIBLE_DEVICES does not hide all GPUs.
CudaDevices find_cuda_devices();

/// "NVIDIA H100 80GB HBM3".
std::string cuda_device_name(int index);

/// Makes GPU `index` the calling thread's, as torch.cuda.set_device does. Other threads begin with
/// GPU 0. Throws UserError where there is no such GPU, and where LibTorch had settled on having no
/// CUDA before the library was loaded (core/cuda_library.h).
void use_cuda_device(int index);

/// Tensors on the calling thread's GPU by NCCL, on a stream of its own; all others by `host`, which
/// has the same members. A PendingWork's wait() makes the current stream wait, not the calling
/// thread, and done() tells whether the GPU has come to the end of the operation.
///
/// An operation that fails on the GPU later than its wait() is known to a thread of the
/// communicator within 0.1 s, which calls `on_error` with a message, once; wait() and further
/// operations throw PeerLost. Peers that die are not found by NCCL but by the control plane.
///
/// To be dropped once all members have their results on the host (barrier()): what is under way
/// is cut off. Collective. Throws PeerLost where a member cannot be reached.
std::shared_ptr<Communicator> connect_nccl(
    c10d::Store& store, std::shared_ptr<Communicator> host,
    const std::function<void(const std::string&)>& on_error = nullptr);

/// Tensors on a GPU go through pinned host memory and `host`; all others straight to `host`, which
/// nobody else uses from now on. wait() blocks until the network has done its part, then makes the
/// current stream wait for the copy to the GPU.
std::shared_ptr<Communicator> stage_cuda(std::shared_ptr<Communicator> host);

}  // namespace decent
