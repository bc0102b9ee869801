#include "decent/comm/control/gather_box.h"

#include <algorithm>
#include <utility>

#include "decent/comm/lost_workers.h"

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

void GatherBox::lose(std::size_t rank) {
  const std::lock_guard lock(mutex_);
  lost_[rank] = true;
  changed_.notify_all();
}

void GatherBox::fail(ExitCode code, std::string message) {
  const std::lock_guard lock(mutex_);
  failed_ = code;
  failure_ = std::move(message);
  changed_.notify_all();
}

bool GatherBox::has_given(std::size_t rank, const std::string& topic) const {
  return given_[rank].contains(topic);
}

bool GatherBox::all_have_given(const std::string& topic) const {
  return std::all_of(given_.begin(), given_.end(),
                     [&](const auto& queues) { return queues.contains(topic); });
}

// Once a worker is lost, others may leave a gather out, even if the lost one has given its bytes.
std::optional<std::size_t> GatherBox::who_never_will(const std::string& topic) const {
  for (std::size_t rank = 0; rank < given_.size(); ++rank) {
    if (lost_[rank] || (closed_[rank] && !has_given(rank, topic))) return rank;
  }
  return std::nullopt;
}

std::vector<int> GatherBox::awaited(const std::string& topic) const {
  std::vector<int> awaited;
  for (std::size_t rank = 0; rank < given_.size(); ++rank) {
    if (!lost_[rank] && !closed_[rank] && !has_given(rank, topic))
      awaited.push_back(static_cast<int>(rank));
  }
  return awaited;
}

std::vector<int> GatherBox::missing(const std::string& topic) {
  const std::lock_guard lock(mutex_);
  return awaited(topic);
}

std::string GatherBox::take_one(std::size_t rank, const std::string& topic) {
  const auto queue = given_[rank].find(topic);
  std::string bytes = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) given_[rank].erase(queue);
  return bytes;
}

std::vector<std::string> GatherBox::take(const std::string& topic) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return all_have_given(topic) || failed_ || who_never_will(topic); });
  if (!all_have_given(topic)) {
    if (failed_) throw Error(*failed_, failure_);
    const std::size_t missing = who_never_will(topic).value();
    const std::string who = "worker " + std::to_string(missing);
    if (lost_[missing]) throw GivenUp(who + " is lost: '" + topic + "' is given up");
    throw PeerLost(who + " has ended before '" + topic + "'");
  }
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < given_.size(); ++rank) all.push_back(take_one(rank, topic));
  return all;
}

std::vector<std::optional<std::string>> GatherBox::take_of_survivors(const std::string& topic) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || awaited(topic).empty(); });
  if (failed_) throw Error(*failed_, failure_);
  std::vector<std::optional<std::string>> all(given_.size());
  for (std::size_t rank = 0; rank < given_.size(); ++rank) {
    if (has_given(rank, topic)) all[rank] = take_one(rank, topic);
  }
  return all;
}

void GatherBox::wait_closed(std::size_t rank, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return closed_[rank] || failed_; });
}

}  // namespace decent
