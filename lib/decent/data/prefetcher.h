#pragma once
// Reads batches ahead of the consumer, in one or several threads.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "decent/data/batch.h"

namespace decent {

/// Returns the batches first, first + 1, .. , last - 1 of a sequence, exactly these and in this
/// order, whatever the depth and the number of threads. There is one consumer: one thread calls
/// next() and the destructor. The reader runs in the prefetcher's threads, each of which reads one
/// batch at a time; with depth 0 it runs in the consumer's thread. It should not call operators of
/// PyTorch that compute, since PyTorch gives every thread that computes a thread pool of its own.
class Prefetcher {
 public:
  using Reader = std::function<Batch(std::int64_t number)>;
  /// A value for `last`: the sequence has no end.
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  /// At most `depth` batches, or one for each of `threads` if that is more, are ready or being
  /// read. Depth 0 starts no thread and reads when asked. `threads` is >= 1; with several, `reader`
  /// must be safe to call from several at once. Each thread calls `on_start` first; an exception
  /// from it takes the place of the batches that the thread would have read.
  Prefetcher(Reader reader, std::int64_t first, std::int64_t last, std::size_t depth,
             std::size_t threads = 1, const std::function<void()>& on_start = nullptr);
  /// Waits for the reads under way, and drops the batches that were read ahead.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next batch and returns it. If the reader threw for that batch, throws its
  /// exception, now and in every later call; once a read has failed no other begins. Throws
  /// std::logic_error past the last batch.
  Batch next();

  /// Whether next() would return a batch at once, because it was read ahead without an error.
  bool ready();

  /// The number of the batch that next() will return.
  std::int64_t number() const { return number_; }
  bool done() const { return number_ == last_; }

 private:
  struct Result {
    Batch batch;
    std::exception_ptr error;  // null if the batch is good
  };

  Result read(std::int64_t number) const;
  Result take();
  bool may_begin() const { return stop_ || begun_ >= end_ || begun_ - taken_ < depth_; }
  void run(const std::function<void()>& on_start);

  Reader reader_;
  std::int64_t number_;
  std::int64_t last_;
  std::int64_t depth_;
  std::exception_ptr failure_;  // the consumer's: what next() throws from now on

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::int64_t begun_;  // the first batch that no thread has begun to read
  std::int64_t taken_;  // the first one that the consumer has not taken
  std::int64_t end_;    // no thread begins this one
  std::map<std::int64_t, Result> ready_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace decent
