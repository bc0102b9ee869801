#pragma once
// The GPUs of this process, and communicators for their tensors. The code is in the shared library
// of core/cuda_library.h. These functions load that library, and throw UserError if they cannot.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/gpu_memory.h"

namespace c10d {
class Store;
}

namespace decent {

/// The GPUs that this process may use (CUDA_VISIBLE_DEVICES), by number.
struct CudaDevices {
  int count = 0;
  std::string problem = {};  // why there is none, e.g. built without CUDA, no driver; else empty
  /// Whether there seems to be a GPU, so that a user who asked for none may want to know the
  /// problem.
  bool unexpected = false;
};
/// Does not throw. The library is loaded only where the machine has NVIDIA's driver and
/// CUDA_VISIBLE_DEVICES does not hide all GPUs.
CudaDevices find_cuda_devices();

/// Identifies a GPU.
struct GpuId {
  std::string id;    // its UUID; parts of a GPU (MIG) have one each
  std::string card;  // the same for all parts of a GPU: NCCL takes them for one
};

/// The ids of the GPUs that find_cuda_devices() counts.
std::vector<GpuId> cuda_device_ids();

/// "NVIDIA H100 80GB HBM3".
std::string cuda_device_name(int index);

/// Peak use since the process began, or since the last call with `restart`, which resets the peaks.
/// nullopt on the CPU.
std::optional<GpuMemory> gpu_memory(at::Device device, bool restart = false);

/// Makes GPU `index` the current one of the calling thread, as torch.cuda.set_device does. Other
/// threads begin with GPU 0. Throws UserError if there is no such GPU, or if LibTorch decided that
/// there is no CUDA before the library was loaded (core/cuda_library.h).
void use_cuda_device(int index);

/// A communicator that sends tensors on the calling thread's GPU by NCCL, on a stream of its own,
/// and all others by `host`, which has the same members. wait() makes the current stream wait, not
/// the calling thread. done() says whether the GPU has completed the operation.
///
/// If an operation fails on the GPU after its wait(), a thread of the communicator notices within
/// 0.1 s and calls `on_error` once with a message; wait() and further operations throw PeerLost.
/// The control plane, and not NCCL, finds peers that die.
///
/// Destroy it, and the groups made of it, only when all members have their results on the host
/// (drain(), then barrier()): the last of them cuts off operations that are under way. Collective.
/// Throws PeerLost if a member cannot be reached.
std::shared_ptr<Communicator> connect_nccl(
    c10d::Store& store, std::shared_ptr<Communicator> host,
    const std::function<void(const std::string&)>& on_error = nullptr);

/// A communicator that sends tensors on a GPU through pinned host memory and `host`, and all others
/// directly by `host`. Nobody else may use `host` from now on. wait() blocks until the network is
/// done, then makes the current stream wait for the copy to the GPU.
std::shared_ptr<Communicator> stage_cuda(std::shared_ptr<Communicator> host);

}  // namespace decent
