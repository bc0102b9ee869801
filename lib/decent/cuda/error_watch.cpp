#include "decent/cuda/error_watch.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <utility>

namespace decent {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);  // as often as c10d itself looks

}  // namespace

ErrorWatch::ErrorWatch(std::function<void(const std::string&)> on_error)
    : on_error_(std::move(on_error)) {
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
      changed_.wait_for(lock, kInterval, [&] { return stop_; });
      if (stop_) return;
      message = find_error();
    }
  }
  on_error_(message);
}

std::string ErrorWatch::find_error() const {
  for (const auto& [group, name] : groups_) {
    if (group->getError() != c10d::ErrorType::SUCCESS)
      return name + " failed (NCCL_DEBUG=WARN in the environment says more)";
  }
  return {};
}

}  // namespace decent
