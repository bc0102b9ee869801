#pragma once
// Calls that may never return.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace decent {

/// Calls `work` in a thread of its own, and returns when it is over or after `most`; whether it was
/// over. After `most` the thread, and what `work` holds, are left to themselves. What `work` throws
/// is lost.
inline bool done_within(std::chrono::milliseconds most, std::function<void()> work) {
  const auto over = std::make_shared<std::promise<void>>();
  std::thread([over, work = std::move(work)]() mutable {
    try {
      work();
    } catch (...) {  // nobody waits for it any more
    }
    work = nullptr;
    over->set_value();
  }).detach();
  return over->get_future().wait_for(most) == std::future_status::ready;
}

}  // namespace decent
