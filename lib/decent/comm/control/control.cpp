#include "decent/comm/control/control.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "decent/comm/control/control_frames.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

// How long a worker that ends listens for others that end at the same time.
constexpr auto kSettleTime = 100ms;
// How long an error of an operation with peers waits for the news of who was lost.
constexpr auto kNewsOfLoss = 2s;
// How long it may take until the kernel has the goodbyes and all frames before them.
constexpr auto kGoodbyes = 10s;

}  // namespace

Control::Control(ControlOptions options)
    : rank_(options.rank),
      on_failure_(std::move(options.on_failure)),
      links_(std::move(options.connections),
             {.frame = [this](std::size_t rank,
                              std::string_view content) { take_frame(rank, content); },
              .heard = [this](std::size_t rank) { liveness_.heard(rank, Clock::now()); },
              .ended =
                  [this](std::size_t rank, int error) {
                    const auto loss = liveness_.ended(rank, error, Clock::now());
                    if (loss) decide_on(*loss);
                  }}),
      liveness_(rank_, options.hosts, progress_, options.timeout,
                std::move(options.timeout_setting), Clock::now()),
      stop_requests_(std::move(options.launcher)),
      box_(links_.size()),
      stop_(links_.size()) {
  if (liveness_.workers() != links_.size())
    throw std::invalid_argument("Control: a host and a connection are needed for every worker");
  thread_ = std::thread([this] { run(); });
}

Control::~Control() { stop_thread(End::abandon); }

void Control::leave() { stop_thread(End::leave); }

void Control::stop_thread(End end) {
  {
    const std::lock_guard lock(mutex_);
    if (end_ == End::none) end_ = end;
  }
  links_.wake();
  if (thread_.joinable()) thread_.join();
}

void Control::set_timeout(std::chrono::duration<double> timeout) {
  liveness_.set_timeout(timeout);
  links_.wake();
}

// ---- called by the training thread ----------------------------------------------------------

void Control::resume_from(std::int64_t step) { progress_.begin_step(step); }

bool Control::begin_step(std::int64_t t) {
  std::unique_lock lock(mutex_);
  if (stop_.is_open()) {
    changed_.wait(lock, [&] { return stop_.is_settled() || failure_; });
    if (!stop_.is_settled() || t > stop_.stop().last_step) return false;
  }
  progress_.begin_step(t);
  return true;
}

bool Control::stop_asked() const {
  const std::lock_guard lock(mutex_);
  return stop_.is_open();
}

Stop Control::stop() const {
  const std::lock_guard lock(mutex_);
  Stop stop = stop_.stop();
  stop.launcher = stop_requests_.launcher_name();
  return stop;
}

std::vector<std::string> Control::gather(const std::string& topic, std::string own) {
  {
    const std::lock_guard lock(mutex_);
    to_send_.push_back(frames::given({topic, own}));
  }
  box_.give(static_cast<std::size_t>(rank_), topic, std::move(own));
  links_.wake();
  return box_.take(topic);
}

void Control::wait_until_left(int rank, std::chrono::milliseconds most) {
  box_.wait_closed(static_cast<std::size_t>(rank), most);
}

void Control::on_launcher_end(LauncherEnd what) {
  stop_requests_.on_launcher_end(what);
  links_.wake();
}

void Control::request_stop(int signal) noexcept {
  stop_requests_.note_signal(signal);
  links_.wake();
}

void Control::fail(Failure failure) {
  set_failure(std::move(failure));
  links_.wake();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_told_ || end_ != End::none; });
}

void Control::fail_after_loss(Failure failure) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kNewsOfLoss, [&] { return failure_.has_value(); });
  }
  fail(std::move(failure));
}

void Control::set_failure(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  changed_.notify_all();
}

std::optional<Failure> Control::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Control::End Control::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

// ---- the control thread ---------------------------------------------------------------------

void Control::run() {
  while (end() == End::none) {
    const auto until_beat = std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - Clock::now());
    listen(std::max(0ms, until_beat));
    beat_if_due();
    check_liveness();
    pass_on_stop_requests();
    send_given();
    if (const auto failed = failure()) {
      announce_failure(*failed);
      return;
    }
  }
  if (end() == End::leave) say_goodbye();
}

// Waits for something to happen, `most` at the longest, and handles it.
void Control::listen(std::chrono::milliseconds most) {
  if (links_.listen(most, stop_requests_.launcher())) stop_requests_.note_launcher_end();
}

void Control::take_frame(std::size_t rank, std::string_view frame) {
  if (const auto position = frames::read_beat(frame)) {
    liveness_.is_at(rank, *position);
  } else if (const auto stop = frames::read_stop(frame)) {
    join_stop(stop->signal, stop->rank);
  } else if (const auto cap = frames::read_cap(frame)) {
    const std::lock_guard lock(mutex_);
    stop_.promise(rank, *cap);
    changed_.notify_all();
  } else if (auto failure = frames::read_failure(frame)) {
    liveness_.left(rank);
    set_failure(std::move(*failure));
  } else if (auto given = frames::read_given(frame)) {
    box_.give(rank, given->topic, std::move(given->bytes));
  } else if (frame == "L") {
    liveness_.left(rank);
    box_.close(rank);
  }
}

void Control::beat_if_due() {
  const auto now = Clock::now();
  if (now < next_beat_) return;
  next_beat_ = now + liveness_.beat_interval();
  links_.offer_to_all(frames::beat(progress_.position()));
}

void Control::check_liveness() {
  const auto found = liveness_.check(Clock::now());
  for (const Loss& loss : found.silent) decide_on(loss);
  if (!found.hanging) return;
  set_failure({.code = ExitCode::peer_lost, .rank = -1, .lost = false, .message = *found.hanging});
}

// The only place that decides what happens to a run that has lost a worker: it ends.
void Control::decide_on(const Loss& loss) {
  set_failure(
      {.code = ExitCode::peer_lost, .rank = loss.rank, .lost = true, .message = loss.message()});
}

void Control::pass_on_stop_requests() {
  while (const auto request = stop_requests_.take(Clock::now())) {
    if (request->at_once) {
      set_failure({.code = ExitCode::stopped,
                   .rank = rank_,
                   .lost = false,
                   .message = stop_requests_.message_of(*request)});
    } else {
      join_stop(request->signal, rank_);
    }
  }
}

void Control::send_given() {
  std::vector<std::string> given;
  {
    const std::lock_guard lock(mutex_);
    given.swap(to_send_);
  }
  for (const std::string& frame : given) links_.send_to_all(frame);
}

void Control::join_stop(int signal, int rank) {
  const std::lock_guard lock(mutex_);
  if (!stop_.open(signal, rank)) return;
  links_.send_to_all(frames::stop({signal, rank}));
  const std::int64_t step = progress_.position().step;
  links_.send_to_all(frames::cap(step));
  stop_.promise(static_cast<std::size_t>(rank_), step);
  changed_.notify_all();
}

// The news goes out before anything else: a peer that sees this worker's connections close must
// know why.
void Control::announce_failure(const Failure& failure) {
  links_.send_to_all(frames::failure(failure));
  const auto settled = Clock::now() + kSettleTime;
  while (Clock::now() < settled) {
    listen(std::chrono::ceil<std::chrono::milliseconds>(settled - Clock::now()));
  }
  on_failure_(failure, liveness_.reports(failure));
  box_.fail(failure.code, failure.message);
  const std::lock_guard lock(mutex_);
  failure_told_ = true;
  changed_.notify_all();
}

// First sends the bytes that were given to gathers, because the others wait for them.
void Control::say_goodbye() {
  send_given();
  links_.send_to_all(frames::leave());
  const auto deadline = Clock::now() + kGoodbyes;
  while (links_.has_unsent() && Clock::now() < deadline) listen(100ms);
}

}  // namespace decent
