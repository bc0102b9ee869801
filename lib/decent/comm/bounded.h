#pragma once
// Calls that may never return.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace decent {

/// For done_within(): calls `work`. Drops its errors, because nobody may wait for them any more.
inline void call_and_tell(const std::shared_ptr<std::promise<void>>& over,
                          std::function<void()> work) {
  try {
    work();
  } catch (...) {
  }
  work = nullptr;
  over->set_value();
}

/// Calls `work` in a new thread and waits for its end, but no longer than `most`. Returns whether
/// it has ended; if not, the thread goes on and keeps what `work` holds. (The thread runs a
/// function, because the library for GPUs would export the type of a lambda.)
inline bool done_within(std::chrono::milliseconds most, std::function<void()> work) {
  const auto over = std::make_shared<std::promise<void>>();
  std::thread(call_and_tell, over, std::move(work)).detach();
  return over->get_future().wait_for(most) == std::future_status::ready;
}

}  // namespace decent
