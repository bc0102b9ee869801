#pragma once
// The exchanges that are under way, one a bucket at most: each is waited for once, whoever asks
// first, and traced from its start to its end.

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

  /// `send` starts the operation, of which the timeline says that it sends `bytes`. `meeting`
  /// outlives it.
  void start(std::size_t bucket, const Meeting& meeting, std::int64_t bytes,
             const std::function<Pending()>& send);

  /// Waits, unless somebody has. The meeting that the exchange of `bucket` is part of; null: none
  /// is under way.
  const Meeting* wait(std::size_t bucket);

  /// As wait(); none is under way after.
  const Meeting* finish(std::size_t bucket);

  /// Waits for all of them; they stay under way.
  void settle();
  /// Waits for all of them; none is under way after.
  void drop();

 private:
  struct OfBucket {
    Pending work;                      // null once waited for
    const Meeting* meeting = nullptr;  // null: nothing under way
  };

  std::shared_ptr<Trace> trace_;  // outlives the work, whose end it notes
  std::vector<OfBucket> pending_;
};

}  // namespace decent
