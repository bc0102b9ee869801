#include "decent/parallel/exchange/flights.h"

#include <utility>

#include "decent/parallel/watched_work.h"

namespace decent {

Flights::Flights(const ExchangeSetup& setup)
    : trace_(setup.trace), flights_(setup.buckets.size()) {}

void Flights::start(std::size_t bucket, const Meeting& meeting, std::int64_t bytes,
                    const std::function<Pending()>& send) {
  Flight& flight = flights_[bucket];
  TraceSpan span(trace_.get(), exchange_lane(bucket), "exchange",
                 {.bucket = static_cast<std::int64_t>(bucket),
                  .bytes = bytes,
                  .peer = meeting.pair() ? meeting.peers[0] : -1});
  flight.work = send();
  if (span.recording()) flight.work = watched(std::move(flight.work), std::move(span));
  flight.meeting = &meeting;
}

const Meeting* Flights::wait(std::size_t bucket) {
  Flight& flight = flights_[bucket];
  if (flight.work) {
    flight.work->wait();
    flight.work.reset();
  }
  return flight.meeting;
}

const Meeting* Flights::finish(std::size_t bucket) {
  wait(bucket);
  return std::exchange(flights_[bucket].meeting, nullptr);
}

void Flights::settle() {
  for (std::size_t bucket = 0; bucket < flights_.size(); ++bucket) wait(bucket);
}

void Flights::drop() {
  settle();
  for (Flight& flight : flights_) flight.meeting = nullptr;
}

}  // namespace decent
