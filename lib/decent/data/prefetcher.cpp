#include "decent/data/prefetcher.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace decent {

Prefetcher::Prefetcher(Reader reader, std::int64_t first, std::int64_t last, std::size_t depth,
                       std::size_t threads, const std::function<void()>& on_start)
    : reader_(std::move(reader)),
      number_(first),
      last_(last),
      depth_(static_cast<std::int64_t>(depth == 0 ? 0 : std::max(depth, threads))),
      begun_(first),
      taken_(first),
      end_(last) {
  assert(first <= last && threads > 0);
  if (depth_ == 0) return;
  for (std::size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this, on_start] { run(on_start); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Prefetcher::Result Prefetcher::read(std::int64_t number) const {
  try {
    return {reader_(number), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void Prefetcher::run(const std::function<void()>& on_start) {
  std::exception_ptr cannot_read;
  try {
    if (on_start) on_start();
  } catch (...) {
    cannot_read = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return may_begin(); });
    if (stop_ || begun_ >= end_) return;
    const std::int64_t number = begun_++;
    lock.unlock();
    Result result = cannot_read ? Result{{}, cannot_read} : read(number);
    lock.lock();
    if (result.error != nullptr) end_ = number;
    ready_.emplace(number, std::move(result));
    changed_.notify_all();
  }
}

Prefetcher::Result Prefetcher::take() {
  if (depth_ == 0) return read(number_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.contains(number_); });
  Result result = std::move(ready_.extract(number_).mapped());
  ++taken_;
  changed_.notify_all();
  return result;
}

bool Prefetcher::ready() {
  const std::lock_guard lock(mutex_);
  const auto found = ready_.find(number_);
  return found != ready_.end() && found->second.error == nullptr;
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
