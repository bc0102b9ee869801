#include "decent/comm/control/stop_vote.h"

#include <algorithm>

namespace decent {

bool StopVote::open(int signal, int rank) {
  if (stop_) return false;
  stop_ = Stop{.signal = signal, .rank = rank, .last_step = 0};
  return true;
}

void StopVote::promise(std::size_t rank, std::int64_t step) {
  promised_.at(rank) = step;
  settle();
}

void StopVote::settle() {
  std::int64_t last = 0;
  for (const auto& step : promised_) {
    if (!step) return;
    last = std::max(last, *step);
  }
  if (stop_) stop_->last_step = last;
  settled_ = stop_.has_value();
}

}  // namespace decent
