#include "decent/comm/lost_workers.h"

#include <algorithm>

namespace decent {
namespace {

using namespace std::chrono_literals;

// How long an operation that failed waits for the news of who was lost.
constexpr auto kNews = 2s;

}  // namespace

bool LostWorkers::has_any(const Ranks& ranks) const {
  return std::ranges::any_of(ranks, [this](int rank) { return ranks_.contains(rank); });
}

void LostWorkers::add(int rank) {
  const std::lock_guard lock(mutex_);
  if (!ranks_.insert(rank).second) return;
  any_.store(true, std::memory_order_release);
  changed_.notify_all();
  for (auto& [number, watched] : watches_) {
    if (watched.ended && std::ranges::count(watched.ranks, rank) > 0)
      std::exchange(watched.ended, nullptr)();
  }
}

bool LostWorkers::any_of(const Ranks& ranks) const {
  if (!any()) return false;
  const std::lock_guard lock(mutex_);
  return has_any(ranks);
}

bool LostWorkers::confirms(const Ranks& ranks) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kNews, [&] { return has_any(ranks); });
}

LostWorkers::Watch::Watch(LostWorkers& lost, Ranks ranks, std::function<void()> ended)
    : lost_(lost) {
  const std::lock_guard lock(lost_.mutex_);
  number_ = lost_.next_++;
  if (lost_.has_any(ranks)) {
    ended();
    return;
  }
  lost_.watches_.emplace(number_, Watched{std::move(ranks), std::move(ended)});
}

LostWorkers::Watch::~Watch() {
  const std::lock_guard lock(lost_.mutex_);
  lost_.watches_.erase(number_);
}

}  // namespace decent
