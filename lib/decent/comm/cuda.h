#pragma once
// GPUs of this process, and what carries their tensors between workers. All of it is in the shared
// library of core/cuda_library.h; these functions load it.

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
  std::string problem;  // why there is none, e.g. built without CUDA, no driver
};
CudaDevices find_cuda_devices();

/// "NVIDIA H100 80GB HBM3".
std::string cuda_device_name(int index);

/// Makes GPU `index` the calling thread's, as torch.cuda.set_device does.
void use_cuda_device(int index);

/// Tensors on this process's GPU by NCCL, on a stream of their own; all others by `host`, which has
/// the same members. A PendingWork's wait() makes the current stream wait, not the calling thread.
/// Collective.
std::shared_ptr<Communicator> connect_nccl(c10d::Store& store, std::shared_ptr<Communicator> host);

/// Tensors on a GPU go through pinned host memory and `host`; all others straight to `host`.
std::shared_ptr<Communicator> stage_cuda(std::shared_ptr<Communicator> host);

}  // namespace decent
