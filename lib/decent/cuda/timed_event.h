#pragma once
// Measures when the GPU reaches a point in the work of a stream.

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "decent/comm/communicator.h"

namespace decent {

class CudaTimedEvent : public TimedEvent {
 public:
  explicit CudaTimedEvent(c10::DeviceIndex device) : device_(device) {}

  void record() override { event_.record(c10::cuda::getCurrentCUDAStream(device_)); }
  bool passed() override {
    const c10::cuda::CUDAGuard device(device_);
    return event_.query();
  }
  double seconds_since(TimedEvent& earlier) override {
    return 1e-3 * static_cast<CudaTimedEvent&>(earlier).event_.elapsed_time(event_);
  }

 private:
  c10::DeviceIndex device_;
  at::cuda::CUDAEvent event_ = at::cuda::CUDAEvent(cudaEventDefault);  // with its time
};

}  // namespace decent
