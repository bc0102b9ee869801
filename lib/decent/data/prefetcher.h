#pragma once
// Reads batches ahead of the consumer, in one thread, in order.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "decent/data/batch.h"

namespace decent {

/// Returns the batches first, first + 1, .. , last - 1 of a sequence, exactly these and in this
/// order, whatever the depth. There is one consumer: one thread calls next() and the destructor.
/// The reader runs in a thread of the prefetcher (with depth 0 in the consumer's), one call at a
/// time. It should copy and not compute, since PyTorch gives every thread that computes a thread
/// pool of its own.
class Prefetcher {
 public:
  using Reader = std::function<Batch(std::int64_t number)>;
  /// For `last`: a sequence without end.
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  /// At most `depth` batches are kept ready. Depth 0 starts no thread and reads when asked.
  Prefetcher(Reader reader, std::int64_t first, std::int64_t last, std::size_t depth);
  /// Waits for the read under way, and drops the batches that were read ahead.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next batch and returns it. If the reader threw for that batch, throws its
  /// exception, now and in every later call; nothing is read after a failure. Throws
  /// std::logic_error past the last batch.
  Batch next();

  /// The number of the batch that next() will return.
  std::int64_t number() const { return number_; }
  bool done() const { return number_ == last_; }

 private:
  struct Result {
    Batch batch;
    std::exception_ptr error;  // null where the batch is good
  };

  Result read(std::int64_t number) const;
  Result take();
  void run(std::int64_t first);

  Reader reader_;
  std::int64_t number_;
  std::int64_t last_;
  std::size_t depth_;
  std::exception_ptr failure_;  // the consumer's: what next() throws from now on

  std::mutex mutex_;  // guards ready_ and stop_
  std::condition_variable changed_;
  std::deque<Result> ready_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace decent
