#include "decent/comm/staging.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "decent/comm/task_thread.h"

namespace decent {
namespace {

struct HostBuffer {
  at::Tensor memory;  // uint8
  Event last_use;     // the last copy that reads or writes it; null: none
};

/// Host memory for copies from and to a device. It is reused, because pinning memory takes longer
/// than most copies. Threads: any thread may call take() and destroy a buffer.
class HostBuffers {
 public:
  explicit HostBuffers(std::shared_ptr<StagingDevice> device);

  /// A buffer of at least `bytes`: the smallest free one that is at most twice as large, else a new
  /// one. It becomes free again when the last reference to it is destroyed.
  std::shared_ptr<HostBuffer> take(std::int64_t bytes);

 private:
  struct Free;
  std::shared_ptr<StagingDevice> device_;
  std::shared_ptr<Free> free_;
};

struct HostBuffers::Free {
  std::mutex mutex;
  std::multimap<std::int64_t, std::unique_ptr<HostBuffer>> by_size;

  std::unique_ptr<HostBuffer> find(std::int64_t bytes) {
    const std::lock_guard lock(mutex);
    const auto best = by_size.lower_bound(bytes);
    if (best == by_size.end() || best->first > 2 * bytes) return nullptr;
    auto buffer = std::move(best->second);
    by_size.erase(best);
    return buffer;
  }

  void put_back(std::unique_ptr<HostBuffer> buffer) {
    const std::lock_guard lock(mutex);
    const std::int64_t bytes = buffer->memory.numel();
    by_size.emplace(bytes, std::move(buffer));
  }
};

HostBuffers::HostBuffers(std::shared_ptr<StagingDevice> device)
    : device_(std::move(device)), free_(std::make_shared<Free>()) {}

std::shared_ptr<HostBuffer> HostBuffers::take(std::int64_t bytes) {
  std::unique_ptr<HostBuffer> buffer = free_->find(bytes);
  if (buffer == nullptr) {
    buffer = std::make_unique<HostBuffer>(
        HostBuffer{.memory = device_->allocate_host(bytes), .last_use = nullptr});
  }
  return {buffer.release(), [free = free_](HostBuffer* used) {
            std::unique_ptr<HostBuffer> owned(used);
            if (owned->memory.defined()) free->put_back(std::move(owned));
          }};
}

// Shared by all groups that were made from one: they have one order of operations.
struct Staging {
  explicit Staging(std::shared_ptr<StagingDevice> its_device)
      : device(std::move(its_device)), buffers(device) {}

  std::shared_ptr<StagingDevice> device;
  HostBuffers buffers;
  TaskThread starting;
  TaskThread finishing;
};

struct StagedOperation {
  std::shared_ptr<Communicator> host;
  std::vector<Event> ready;  // passed before it starts
  std::function<Pending(Communicator&)> start;
  std::function<Event()> finish;  // after it; may be empty
  std::vector<std::shared_ptr<HostBuffer>> buffers;
  std::promise<Event> result;  // when its tensor may be used again
};

class StagedPending : public PendingWork {
 public:
  explicit StagedPending(std::shared_future<Event> result) : result_(std::move(result)) {}

  void wait() override {
    if (const Event& event = result_.get()) event->wait_on_stream();
  }

  void wait_on_host() override {
    if (const Event& event = result_.get()) event->wait_on_host();
  }

  bool done() override {
    if (result_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    try {
      const Event& event = result_.get();
      return event == nullptr || event->passed();
    } catch (...) {
      return true;  // wait() throws it at once
    }
  }

 private:
  std::shared_future<Event> result_;
};

void finish(StagedOperation& operation, PendingWork& work) {
  try {
    work.wait();
    Event event = operation.finish ? operation.finish() : nullptr;
    operation.finish = nullptr;
    operation.buffers.clear();  // freed before anyone learns of the end
    operation.result.set_value(std::move(event));
  } catch (...) {
    // An operation that was given up may still use its memory.
    for (const auto& buffer : operation.buffers) buffer->memory.reset();
    operation.result.set_exception(std::current_exception());
  }
}

void start(const std::shared_ptr<StagedOperation>& operation, Staging& staging) {
  try {
    for (const Event& event : operation->ready) {
      if (event != nullptr) event->wait_on_host();
    }
    const std::shared_ptr<PendingWork> work = operation->start(*operation->host);
    staging.finishing.post([operation, work] { finish(*operation, *work); });
  } catch (...) {
    operation->result.set_exception(std::current_exception());
  }
}

// The part of a buffer that takes the place of `tensor` on the host.
at::Tensor host_tensor(const HostBuffer& buffer, const at::Tensor& tensor) {
  return buffer.memory.narrow(0, 0, static_cast<std::int64_t>(tensor.nbytes()))
      .view(tensor.scalar_type());
}

class StagedCommunicator : public Communicator {
 public:
  StagedCommunicator(std::shared_ptr<Communicator> host, std::shared_ptr<Staging> staging)
      : host_(std::move(host)), staging_(std::move(staging)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  Pending all_reduce_sum(const at::Tensor& tensor) override {
    if (!on_device(tensor)) {
      return submit([tensor](Communicator& host) { return host.all_reduce_sum(tensor); });
    }
    const auto operation = std::make_shared<StagedOperation>();
    const at::Tensor copy = copy_out(*operation, tensor);
    operation->start = [copy](Communicator& host) { return host.all_reduce_sum(copy); };
    copy_in_at_end(*operation, copy, tensor);
    return submit(operation);
  }

  Pending broadcast(const at::Tensor& tensor, int root) override {
    if (!on_device(tensor)) {
      return submit([tensor, root](Communicator& host) { return host.broadcast(tensor, root); });
    }
    const auto operation = std::make_shared<StagedOperation>();
    const bool sends = rank() == root;
    const at::Tensor copy = sends ? copy_out(*operation, tensor) : make_room(*operation, tensor);
    operation->start = [copy, root](Communicator& host) { return host.broadcast(copy, root); };
    if (!sends) copy_in_at_end(*operation, copy, tensor);
    return submit(operation);
  }

  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    if (!on_device(send)) {
      return submit([=](Communicator& host) { return host.exchange(send, receive, peer, tag); });
    }
    const auto operation = std::make_shared<StagedOperation>();
    const at::Tensor out = copy_out(*operation, send);
    const at::Tensor in = make_room(*operation, receive);
    operation->start = [=](Communicator& host) { return host.exchange(out, in, peer, tag); };
    copy_in_at_end(*operation, in, receive);
    return submit(operation);
  }

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::shared_ptr<Communicator> group;
    in_order([&] { group = host_->subgroup(members); });
    return std::make_shared<StagedCommunicator>(std::move(group), staging_);
  }

  bool go_on_without(const std::shared_ptr<LostWorkers>& lost) override {
    bool goes_on = false;
    in_order([&] { goes_on = host_->go_on_without(lost); });
    return goes_on;
  }

  void barrier() override {
    in_order([&] { host_->barrier(); });
  }

  std::unique_ptr<TimedEvent> timed_event(const at::Tensor& tensor) override {
    return on_device(tensor) ? staging_->device->timed_event() : nullptr;
  }

 private:
  bool on_device(const at::Tensor& tensor) const { return staging_->device->holds(tensor); }

  HostBuffer& add_buffer(StagedOperation& operation, const at::Tensor& tensor) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    operation.buffers.push_back(staging_->buffers.take(std::max<std::int64_t>(bytes, 1)));
    return *operation.buffers.back();
  }

  // Copies the present values of `tensor` to the host, and returns that copy.
  at::Tensor copy_out(StagedOperation& operation, const at::Tensor& tensor) {
    HostBuffer& buffer = add_buffer(operation, tensor);
    at::Tensor copy = host_tensor(buffer, tensor);
    operation.ready.push_back(staging_->device->copy_out(tensor, copy, buffer.last_use));
    buffer.last_use = nullptr;  // it has passed when the operation starts
    return copy;
  }

  // Returns host memory for the new values of `tensor`. The operation starts once the stream has
  // come to this call, after which `tensor` may be overwritten.
  at::Tensor make_room(StagedOperation& operation, const at::Tensor& tensor) {
    HostBuffer& buffer = add_buffer(operation, tensor);
    operation.ready.push_back(staging_->device->copy_out(tensor, at::Tensor(), buffer.last_use));
    buffer.last_use = nullptr;
    return host_tensor(buffer, tensor);
  }

  void copy_in_at_end(StagedOperation& operation, const at::Tensor& copy,
                      const at::Tensor& tensor) {
    HostBuffer& buffer = *operation.buffers.back();
    operation.finish = [device = staging_->device, copy, tensor, &buffer] {
      buffer.last_use = device->copy_in(copy, tensor);
      return buffer.last_use;
    };
  }

  Pending submit(const std::shared_ptr<StagedOperation>& operation) {
    operation->host = host_;
    auto pending = std::make_unique<StagedPending>(operation->result.get_future().share());
    // If it has not begun when the last group is gone, it is dropped with its promise.
    staging_->starting.post([operation, owner = std::weak_ptr(staging_)] {
      if (const auto staging = owner.lock()) start(operation, *staging);
    });
    return pending;
  }

  Pending submit(std::function<Pending(Communicator&)> on_host) {
    const auto operation = std::make_shared<StagedOperation>();
    operation->start = std::move(on_host);
    return submit(operation);
  }

  // Calls `work` when all operations before it have started, and waits for it.
  template <typename Work>
  void in_order(const Work& work) {
    std::promise<void> done;
    staging_->starting.post([&] {
      try {
        work();
        done.set_value();
      } catch (...) {
        done.set_exception(std::current_exception());
      }
    });
    done.get_future().get();
  }

  std::shared_ptr<Communicator> host_;
  std::shared_ptr<Staging> staging_;
};

}  // namespace

std::shared_ptr<Communicator> stage(std::shared_ptr<Communicator> host,
                                    std::shared_ptr<StagingDevice> device) {
  return std::make_shared<StagedCommunicator>(std::move(host),
                                              std::make_shared<Staging>(std::move(device)));
}

}  // namespace decent
