#include "decent/parallel/wait_time.h"

#include <chrono>
#include <utility>

namespace decent {

WaitTime::Wait WaitTime::new_wait() {
  if (free_.empty()) return {.begin = make_(), .end = make_()};
  Wait wait = std::move(free_.back());
  free_.pop_back();
  return wait;
}

void WaitTime::add_passed() {
  while (!under_way_.empty() && under_way_.front().end->passed()) {
    Wait& wait = under_way_.front();
    seconds_ += wait.end->seconds_since(*wait.begin);
    free_.push_back(std::move(wait));
    under_way_.pop_front();
  }
}

void WaitTime::measure(const std::function<void()>& work) {
  add_passed();  // here, too: nobody may ever call take_seconds()
  Wait wait = new_wait();
  if (wait.begin != nullptr) {
    wait.begin->record();
    work();
    wait.end->record();
    under_way_.push_back(std::move(wait));
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  work();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double WaitTime::take_seconds() {
  add_passed();
  return std::exchange(seconds_, 0.0);
}

}  // namespace decent
