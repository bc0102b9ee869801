// Carries the fake device's tensors between workers, as NCCL and staging do, over the host's group.

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/comm/cuda_functions.h"
#include "decent/core/error.h"
#include "decent/cuda/exports.h"
#include "device.h"
#include "operators.h"

namespace decent::fake_gpu {
namespace {

using namespace std::chrono_literals;

class Nccl : public Communicator {
 public:
  explicit Nccl(std::shared_ptr<Communicator> host) : host_(std::move(host)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  Pending all_reduce_sum(const at::Tensor& tensor) override {
    check_device();
    return host_->all_reduce_sum(on_host(tensor));
  }
  Pending broadcast(const at::Tensor& tensor, int root) override {
    check_device();
    return host_->broadcast(on_host(tensor), root);
  }
  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    check_device();
    return host_->exchange(on_host(send), on_host(receive), peer, tag);
  }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::shared_ptr<Communicator> host = host_->subgroup(members);
    return host->size() == 1 ? host : std::make_shared<Nccl>(std::move(host));
  }
  void barrier() override { host_->barrier(); }

 private:
  std::shared_ptr<Communicator> host_;
};

// DECENT_FAKE_NCCL is "fails:RANK" or "hangs:RANK".
bool is_to(const std::string& what, int rank) {
  const char* wish = std::getenv("DECENT_FAKE_NCCL");
  return wish != nullptr && what + ":" + std::to_string(rank) == wish;
}

// Like NCCL: no worker goes on before all have arrived, and the wait has no limit.
void meet(c10d::Store& store, int rank, int workers) {
  if (is_to("fails", rank))
    throw PeerLost("cannot connect the GPUs by NCCL: unhandled system error");
  while (is_to("hangs", rank)) std::this_thread::sleep_for(1s);
  const auto key = [](int of) { return "fake nccl/" + std::to_string(of); };
  store.set(key(rank), std::vector<std::uint8_t>{1});
  std::vector<std::string> keys;
  for (int i = 0; i < workers; ++i) keys.push_back(key(i));
  while (!store.check(keys)) std::this_thread::sleep_for(10ms);
}

class PassedEvent : public DeviceEvent {
 public:
  void wait_on_host() override { check_device(); }
  void wait_on_stream() override { check_device(); }
  bool passed() override { return true; }
};

class Staging : public StagingDevice {
 public:
  bool holds(const at::Tensor& tensor) const override { return tensor.is_cuda(); }
  at::Tensor allocate_host(std::int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  }
  Event copy_out(const at::Tensor& tensor, const at::Tensor& host, const Event&) override {
    check_device();
    if (host.defined()) std::memcpy(host.data_ptr(), tensor.data_ptr(), tensor.nbytes());
    return std::make_shared<PassedEvent>();
  }
  Event copy_in(const at::Tensor& host, const at::Tensor& tensor) override {
    check_device();
    std::memcpy(tensor.data_ptr(), host.data_ptr(), tensor.nbytes());
    return std::make_shared<PassedEvent>();
  }
};

}  // namespace
}  // namespace decent::fake_gpu

extern "C" {

DECENT_CUDA_EXPORT void decent_cuda_connect_nccl(
    c10d::Store* store, const std::shared_ptr<decent::Communicator>* host,
    const std::function<void(const std::string&)>* /*on_error*/,
    std::shared_ptr<decent::Communicator>* result) {
  const int workers = (*host)->size();
  *result = *host;
  if (workers == 1) return;
  decent::fake_gpu::meet(*store, (*host)->rank(), workers);
  *result = std::make_shared<decent::fake_gpu::Nccl>(*host);
}

DECENT_CUDA_EXPORT void decent_cuda_staging_device(std::shared_ptr<decent::StagingDevice>* result) {
  *result = std::make_shared<decent::fake_gpu::Staging>();
}

}  // extern "C"
