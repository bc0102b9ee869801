#include "decent/data/prefetcher.h"

#include <cassert>
#include <stdexcept>
#include <utility>

namespace decent {

Prefetcher::Prefetcher(Reader reader, std::int64_t first, std::int64_t last, std::size_t depth)
    : reader_(std::move(reader)), number_(first), last_(last), depth_(depth) {
  assert(first <= last);
  if (depth_ > 0) thread_ = std::thread([this, first] { run(first); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Prefetcher::Result Prefetcher::read(std::int64_t number) const {
  try {
    return {reader_(number), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void Prefetcher::run(std::int64_t first) {
  for (std::int64_t number = first; number < last_; ++number) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || ready_.size() < depth_; });
      if (stop_) return;
    }
    Result result = read(number);
    const bool failed = result.error != nullptr;
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(result));
    }
    changed_.notify_all();
    if (failed) return;
  }
}

Prefetcher::Result Prefetcher::take() {
  if (depth_ == 0) return read(number_);
  Result result;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty(); });
    result = std::move(ready_.front());
    ready_.pop_front();
  }
  changed_.notify_all();
  return result;
}

Batch Prefetcher::next() {
  if (done()) throw std::logic_error("Prefetcher::next() was called past the last batch");
  if (failure_ == nullptr) {
    Result result = take();
    if (result.error == nullptr) {
      ++number_;
      return std::move(result.batch);
    }
    failure_ = result.error;
  }
  std::rethrow_exception(failure_);
}

}  // namespace decent
