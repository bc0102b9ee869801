#include "decent/comm/control/gather_box.h"

#include <algorithm>
#include <utility>

namespace decent {

void GatherBox::give(std::size_t rank, const std::string& topic, std::string bytes) {
  const std::lock_guard lock(mutex_);
  given_[rank][topic].push_back(std::move(bytes));
  changed_.notify_all();
}

void GatherBox::close(std::size_t rank) {
  const std::lock_guard lock(mutex_);
  closed_[rank] = true;
  changed_.notify_all();
}

void GatherBox::fail(ExitCode code, std::string message) {
  const std::lock_guard lock(mutex_);
  failed_ = code;
  failure_ = std::move(message);
  changed_.notify_all();
}

bool GatherBox::all_have_given(const std::string& topic) const {
  return std::all_of(given_.begin(), given_.end(),
                     [&](const auto& queues) { return queues.contains(topic); });
}

std::optional<std::size_t> GatherBox::who_never_will(const std::string& topic) const {
  for (std::size_t rank = 0; rank < given_.size(); ++rank) {
    if (closed_[rank] && !given_[rank].contains(topic)) return rank;
  }
  return std::nullopt;
}

std::vector<std::string> GatherBox::take(const std::string& topic) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return all_have_given(topic) || failed_ || who_never_will(topic); });
  if (!all_have_given(topic)) {
    if (failed_) throw Error(*failed_, failure_);
    throw PeerLost("worker " + std::to_string(who_never_will(topic).value()) +
                   " has ended before '" + topic + "'");
  }
  std::vector<std::string> all;
  for (auto& queues : given_) {
    const auto queue = queues.find(topic);
    all.push_back(std::move(queue->second.front()));
    queue->second.pop_front();
    if (queue->second.empty()) queues.erase(queue);
  }
  return all;
}

void GatherBox::wait_closed(std::size_t rank, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return closed_[rank] || failed_; });
}

}  // namespace decent
