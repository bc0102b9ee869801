#include "decent/cuda/error_watch.h"

#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <utility>

namespace decent {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);  // as often as c10d itself looks

}  // namespace

ErrorWatch::ErrorWatch(std::function<void(const std::string&)> on_error, c10::Device device)
    : on_error_(std::move(on_error)), device_(device) {
  if (on_error_) thread_ = std::thread([this] { run(); });
}

ErrorWatch::~ErrorWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ErrorWatch::add(const c10::intrusive_ptr<c10d::Backend>& group, const std::string& name) {
  const std::lock_guard lock(mutex_);
  groups_.emplace(group, name);
}

void ErrorWatch::remove(const c10::intrusive_ptr<c10d::Backend>& group) {
  const std::lock_guard lock(mutex_);
  groups_.erase(group);
}

void ErrorWatch::run() {
  std::string message;
  {
    std::unique_lock lock(mutex_);
    while (message.empty()) {
      changed_.wait_for(lock, kPollInterval, [&] { return stop_; });
      if (stop_) return;
      message = find_error();
    }
  }
  on_error_(message);
}

std::string ErrorWatch::find_error() const {
  for (const auto& [group, name] : groups_) {
    if (group->getError() == c10d::ErrorType::SUCCESS) continue;
    const std::string cause = error_of_gpu();
    return name + " failed" +
           (cause.empty() ? " (NCCL_DEBUG=WARN in the environment says more)" : ": " + cause);
  }
  return {};
}

// The error of a faulty GPU, which every call returns from then on; empty if the GPU works.
std::string ErrorWatch::error_of_gpu() const {
  const c10::cuda::CUDAGuard guard(device_);
  const cudaError_t status = cudaStreamQuery(nullptr);
  cudaGetLastError();  // clears "not ready", which CUDA would keep
  if (status == cudaSuccess || status == cudaErrorNotReady) return {};
  return std::string("CUDA error: ") + cudaGetErrorString(status);
}

}  // namespace decent
