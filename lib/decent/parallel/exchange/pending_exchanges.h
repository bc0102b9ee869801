#pragma once
// The exchanges that are under way, at most one per bucket. Each is waited for once, by the first
// call that asks for it, and traced from its start to its end.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "decent/core/trace.h"
#include "decent/parallel/exchange/meetings.h"

namespace decent {

class PendingExchanges {
 public:
  explicit PendingExchanges(const ExchangeSetup& setup);

  /// Calls `send`, which starts the operation. `bytes`: how many it sends, for the trace. `meeting`
  /// must outlive it. An operation that is given up (comm/lost_workers.h), here or in a wait, does
  /// not count as under way.
  void start(std::size_t bucket, const Meeting& meeting, std::int64_t bytes,
             const std::function<Pending()>& send);

  /// Waits for the exchange of `bucket`, unless that was done before, and returns its meeting; null
  /// if none is under way. Throws PeerLost if a neighbour is gone.
  const Meeting* wait(std::size_t bucket);

  /// As wait(); after it, no exchange of `bucket` is under way.
  const Meeting* finish(std::size_t bucket);

  /// Waits for all of them; they still count as under way.
  void settle();
  /// Waits for all of them; after it, none is under way.
  void drop();

  /// Whether one was ever given up. Its messages may still come, into the memory that it had.
  bool gave_up() const { return gave_up_; }

 private:
  struct OfBucket {
    Pending work;                      // null once waited for
    const Meeting* meeting = nullptr;  // null: no exchange under way
  };

  std::shared_ptr<Trace> trace_;  // must outlive the work, whose end it records
  std::vector<OfBucket> pending_;
  bool gave_up_ = false;
};

}  // namespace decent
