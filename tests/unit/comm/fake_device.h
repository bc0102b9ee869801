#pragma once
// A device for stage() whose memory is the host's and whose two streams are threads.

#include <ATen/ops/full.h>

#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <set>
#include <utility>

#include "decent/comm/staging.h"
#include "decent/comm/task_thread.h"

namespace decent::testing {

class FakeEvent : public DeviceEvent {
 public:
  FakeEvent(std::shared_future<void> passed, std::shared_ptr<std::atomic<int>> stream_waits)
      : passed_(std::move(passed)), stream_waits_(std::move(stream_waits)) {}

  void wait_on_host() override { passed_.get(); }
  // The fake's current stream is the thread itself.
  void wait_on_stream() override {
    ++*stream_waits_;
    passed_.get();
  }
  bool passed() override {
    return passed_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

 private:
  std::shared_future<void> passed_;
  std::shared_ptr<std::atomic<int>> stream_waits_;
};

/// Copies take until `copies_may_end` is ready.
class FakeDevice : public StagingDevice {
 public:
  /// A tensor of the device with these values.
  at::Tensor put(const at::Tensor& values) {
    at::Tensor tensor = values.clone();
    const std::lock_guard lock(mutex_);
    memory_.insert(tensor.data_ptr());
    return tensor;
  }

  bool holds(const at::Tensor& tensor) const override {
    const std::lock_guard lock(mutex_);
    return memory_.contains(tensor.data_ptr());
  }

  at::Tensor allocate_host(std::int64_t bytes) override {
    ++allocated;
    return at::full({bytes}, 0xAB, at::kByte);
  }

  Event copy_out(const at::Tensor& tensor, const at::Tensor& host, const Event& after) override {
    if (host.defined()) ++copied_out;
    return on(out_, [=] {
      if (after != nullptr) after->wait_on_host();
      if (host.defined()) std::memcpy(host.data_ptr(), tensor.data_ptr(), tensor.nbytes());
    });
  }

  Event copy_in(const at::Tensor& host, const at::Tensor& tensor) override {
    ++copied_in;
    return on(in_, [=] { std::memcpy(tensor.data_ptr(), host.data_ptr(), tensor.nbytes()); });
  }

  /// From now on copies wait for `gate`.
  void hold(std::shared_future<void> gate) {
    const std::lock_guard lock(mutex_);
    gate_ = std::move(gate);
  }

  int stream_waits() const { return *stream_waits_; }

  std::atomic<int> allocated = 0;
  std::atomic<int> copied_out = 0;
  std::atomic<int> copied_in = 0;

 private:
  template <typename Copy>
  Event on(TaskThread& stream, Copy copy) {
    auto end = std::make_shared<std::promise<void>>();
    auto event = std::make_shared<FakeEvent>(end->get_future().share(), stream_waits_);
    std::shared_future<void> gate;
    {
      const std::lock_guard lock(mutex_);
      gate = gate_;
    }
    stream.post([=] {
      if (gate.valid()) gate.wait();
      copy();
      end->set_value();
    });
    return event;
  }

  std::shared_ptr<std::atomic<int>> stream_waits_ = std::make_shared<std::atomic<int>>(0);
  mutable std::mutex mutex_;
  std::set<void*> memory_;
  std::shared_future<void> gate_;
  TaskThread out_;
  TaskThread in_;
};

}  // namespace decent::testing
