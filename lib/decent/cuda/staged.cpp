// The copies between a GPU and pinned host memory that comm/staging.h asks for.

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "decent/comm/cuda_functions.h"
#include "decent/comm/staging.h"
#include "decent/cuda/exports.h"
#include "decent/cuda/timed_event.h"

namespace decent {
namespace {

class CudaEvent : public DeviceEvent {
 public:
  CudaEvent(const at::cuda::CUDAStream& stream, unsigned int flags)
      : device_(stream.device_index()), event_(flags) {
    event_.record(stream);
  }
  // Both choose the GPU first, because they are called by threads that have not, for which CUDA
  // would create a context on GPU 0.
  void wait_on_host() override {
    const c10::cuda::CUDAGuard device(device_);
    event_.synchronize();
  }
  bool passed() override {
    const c10::cuda::CUDAGuard device(device_);
    return event_.query();
  }
  void wait_on_stream() override { block(c10::cuda::getCurrentCUDAStream(device_)); }

  void block(const at::cuda::CUDAStream& stream) { event_.block(stream); }

 private:
  c10::DeviceIndex device_;
  at::cuda::CUDAEvent event_;
};

constexpr unsigned int kOnStreams = cudaEventDisableTiming;
// A thread that waits for the event sleeps instead of polling, as it would by default.
constexpr unsigned int kOnHost = cudaEventDisableTiming | cudaEventBlockingSync;

// Two streams, because a GPU copies in both directions at once, and so that data from the network
// does not queue behind results that a later computation has yet to produce.
class CudaStagingDevice : public StagingDevice {
 public:
  explicit CudaStagingDevice(c10::DeviceIndex index)
      : out_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)),
        in_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)) {}

  bool holds(const at::Tensor& tensor) const override { return tensor.is_cuda(); }

  at::Tensor allocate_host(std::int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  }

  Event copy_out(const at::Tensor& tensor, const at::Tensor& host, const Event& after) override {
    const c10::cuda::CUDAGuard device(tensor.device());
    CudaEvent now(c10::cuda::getCurrentCUDAStream(out_.device_index()), kOnStreams);
    now.block(out_);
    if (after != nullptr) static_cast<CudaEvent&>(*after).block(out_);
    if (host.defined()) {
      C10_CUDA_CHECK(cudaMemcpyAsync(host.data_ptr(), tensor.data_ptr(), tensor.nbytes(),
                                     cudaMemcpyDeviceToHost, out_.stream()));
    }
    return std::make_shared<CudaEvent>(out_, kOnHost);
  }

  // Need not wait for the caller's stream: the operation started after everything that stream had
  // to do before.
  Event copy_in(const at::Tensor& host, const at::Tensor& tensor) override {
    const c10::cuda::CUDAGuard device(tensor.device());
    C10_CUDA_CHECK(cudaMemcpyAsync(tensor.data_ptr(), host.data_ptr(), tensor.nbytes(),
                                   cudaMemcpyHostToDevice, in_.stream()));
    return std::make_shared<CudaEvent>(in_, kOnHost);
  }

  std::unique_ptr<TimedEvent> timed_event() override {
    return std::make_unique<CudaTimedEvent>(in_.device_index());
  }

 private:
  at::cuda::CUDAStream out_;
  at::cuda::CUDAStream in_;
};

}  // namespace
}  // namespace decent

extern "C" DECENT_CUDA_EXPORT void decent_cuda_staging_device(
    std::shared_ptr<decent::StagingDevice>* result) {
  *result = std::make_shared<decent::CudaStagingDevice>(c10::cuda::current_device());
}
