#include "decent/parallel/exchange/pending_exchanges.h"

#include <utility>

#include "decent/comm/lost_workers.h"
#include "decent/parallel/pending_work.h"

namespace decent {

PendingExchanges::PendingExchanges(const ExchangeSetup& setup)
    : trace_(setup.trace), pending_(setup.buckets.size()) {}

void PendingExchanges::start(std::size_t bucket, const Meeting& meeting, std::int64_t bytes,
                             const std::function<Pending()>& send) {
  OfBucket& own = pending_[bucket];
  TraceSpan span(trace_.get(), exchange_lane(bucket), "exchange",
                 {.bucket = static_cast<std::int64_t>(bucket),
                  .bytes = bytes,
                  .peer = meeting.pair() ? meeting.peers[0] : -1});
  try {
    own.work = send();
  } catch (const GivenUp&) {
    gave_up_ = true;
    return;
  }
  if (span.recording()) own.work = watched(std::move(own.work), std::move(span));
  own.meeting = &meeting;
}

const Meeting* PendingExchanges::wait(std::size_t bucket) {
  OfBucket& own = pending_[bucket];
  if (!own.work) return own.meeting;
  try {
    own.work->wait();
  } catch (const GivenUp&) {
    gave_up_ = true;
    own.meeting = nullptr;
  }
  own.work.reset();
  return own.meeting;
}

const Meeting* PendingExchanges::finish(std::size_t bucket) {
  wait(bucket);
  return std::exchange(pending_[bucket].meeting, nullptr);
}

void PendingExchanges::settle() {
  for (std::size_t bucket = 0; bucket < pending_.size(); ++bucket) wait(bucket);
}

void PendingExchanges::drop() {
  settle();
  for (OfBucket& own : pending_) own.meeting = nullptr;
}

}  // namespace decent
