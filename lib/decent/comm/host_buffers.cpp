#include "decent/comm/host_buffers.h"

#include <map>
#include <mutex>
#include <utility>

namespace decent {

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
  return {buffer.release(),
          [free = free_](HostBuffer* used) { free->put_back(std::unique_ptr<HostBuffer>(used)); }};
}

}  // namespace decent
