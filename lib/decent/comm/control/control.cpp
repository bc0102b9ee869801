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
// A thread that has not run for so many heartbeats was stopped.
constexpr int kBeatsMissed = 3;
// How long workers that have finished their steps may keep others waiting after farewell_s: a
// quarter of that, but no longer than launchers wait.
constexpr int kSavesLate = 4;
constexpr auto kMostSavesLate = 5s;
// How long a worker that would not save waits for news of others that have ended.
constexpr auto kNewsOfEnds = 1s;
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
                    if (kind_of_end(error) == LossKind::gone) note_gone(rank);
                  }}),
      liveness_(rank_, options.hosts, progress_, options.timeout,
                std::move(options.timeout_setting), Clock::now()),
      stop_requests_(std::move(options.launcher)),
      box_(links_.size()),
      stop_(links_.size()),
      farewell_(rank_, links_.size()) {
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
  if (stop_.is_open() || farewell_.begun()) {
    const auto settled = [&] {
      return farewell_.begun() ? farewell_.settled() : stop_.is_settled();
    };
    changed_.wait(lock, [&] { return settled() || failure_; });
    if (!settled()) return false;
    if (t > (farewell_.begun() ? farewell_.last_step() : stop_.stop().last_step)) return false;
  }
  progress_.begin_step(t);
  return true;
}

bool Control::stop_asked() const {
  const std::lock_guard lock(mutex_);
  return stop_.is_open() || farewell_.begun();
}

void Control::begin_farewells(std::chrono::duration<double> most) {
  const std::lock_guard lock(mutex_);
  farewell_limit_ = most;
}

bool Control::end_farewells() {
  const std::lock_guard lock(mutex_);
  if (!farewell_.begun()) farewell_limit_.reset();
  return !farewell_.begun();
}

bool Control::in_farewell() const {
  const std::lock_guard lock(mutex_);
  return farewell_.begun();
}

Farewell Control::farewell() const {
  const std::lock_guard lock(mutex_);
  return farewell_;
}

std::chrono::system_clock::time_point Control::lost_at() const {
  const std::lock_guard lock(mutex_);
  return lost_at_;
}

// The pass that is under way may have read too early.
void Control::catch_up() {
  std::unique_lock lock(mutex_);
  if (Clock::now() - last_pass_ < kBeatsMissed * liveness_.beat_interval()) return;
  const std::int64_t enough = passes_ + 2;
  links_.wake();
  changed_.wait(lock, [&] { return passes_ >= enough || failure_told_ || end_ != End::none; });
}

void Control::end_pass() {
  const std::lock_guard lock(mutex_);
  last_pass_ = Clock::now();
  ++passes_;
  changed_.notify_all();
}

void Control::arrive() {
  const std::lock_guard lock(mutex_);
  farewell_.arrives(rank_);
  to_send_.push_back(frames::arrival());
  links_.wake();
}

bool Control::saves_in_farewell() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return farewell_.settled() || failure_; });
  changed_.wait_for(lock, kNewsOfEnds, [&] { return farewell_.saves() || failure_; });
  return farewell_.saves() && !failure_;
}

std::vector<std::optional<std::string>> Control::gather_of_survivors(const std::string& topic,
                                                                     std::string own) {
  const auto waits_for = [this](const std::optional<std::string>& awaited) {
    const std::lock_guard lock(mutex_);
    gathers_ = awaited;
  };
  give(topic, std::move(own));
  waits_for(topic);
  auto all = box_.take_of_survivors(topic);
  waits_for(std::nullopt);
  return all;
}

Stop Control::stop() const {
  const std::lock_guard lock(mutex_);
  Stop stop = stop_.stop();
  stop.launcher = stop_requests_.launcher_name();
  return stop;
}

void Control::give(const std::string& topic, std::string own) {
  {
    const std::lock_guard lock(mutex_);
    to_send_.push_back(frames::given({topic, own}));
  }
  box_.give(static_cast<std::size_t>(rank_), topic, std::move(own));
  links_.wake();
}

std::vector<std::string> Control::gather(const std::string& topic, std::string own) {
  give(topic, std::move(own));
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
    leave_late_behind();
    pass_on_stop_requests();
    send_given();
    if (const auto failed = failure()) {
      announce_failure(*failed);
      return;
    }
    end_pass();
  }
  if (end() == End::leave) say_goodbye();
}

// Waits for something to happen, `most` at the longest, and handles it.
void Control::listen(std::chrono::milliseconds most) {
  if (links_.listen(most, stop_requests_.launcher())) stop_requests_.note_launcher_end();
}

// What a lost worker still says does not count: the others have told it that it is lost.
void Control::take_frame(std::size_t rank, std::string_view frame) {
  if (is_lost(static_cast<int>(rank))) {
    if (frames::read_failure(frame)) note_gone(rank);
    return;
  }
  if (const auto position = frames::read_beat(frame)) {
    liveness_.is_at(rank, *position);
  } else if (const auto stop = frames::read_stop(frame)) {
    join_stop(stop->signal, stop->rank);
  } else if (const auto cap = frames::read_cap(frame)) {
    const std::lock_guard lock(mutex_);
    stop_.promise(rank, *cap);
    changed_.notify_all();
  } else if (auto failure = frames::read_failure(frame)) {
    take_failure(rank, std::move(*failure));
  } else if (auto given = frames::read_given(frame)) {
    box_.give(rank, given->topic, std::move(given->bytes));
  } else if (const auto news = frames::read_news(frame)) {
    say_farewell_to(*news);
  } else if (auto claim = frames::read_claim(frame)) {
    const std::lock_guard lock(mutex_);
    farewell_.claims(static_cast<int>(rank), std::move(*claim));
    changed_.notify_all();
  } else if (frames::is_arrival(frame)) {
    const std::lock_guard lock(mutex_);
    farewell_.arrives(static_cast<int>(rank));
  } else if (frames::is_leave(frame)) {
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
  if (found.hanging && !in_farewell()) decide_on(*found.hanging);  // that has its own limits
}

// This and the next are the only places that decide what happens to a run that has lost a worker.
void Control::decide_on(const Loss& loss) {
  say_farewell_to({.rank = loss.rank, .kind = loss.kind, .reason = loss.message()});
}

// Each of the workers that hang finds that by itself. If all do, nobody is left.
void Control::decide_on(const Liveness::Hanging& hanging) {
  const bool some_are_left = hanging.ranks.size() + farewell().lost().size() < links_.size();
  if (!may_say_farewell() || !some_are_left) {
    return set_failure(
        {.code = ExitCode::peer_lost, .rank = -1, .lost = false, .message = hanging.message});
  }
  for (const int rank : hanging.ranks)
    say_farewell_to({.rank = rank, .kind = LossKind::gone, .reason = hanging.message});
}

// A worker that fails after a loss is one more that is lost, and so is one that found out that it
// hangs.
void Control::take_failure(std::size_t rank, Failure failure) {
  const bool is_itself = failure.lost && failure.rank == static_cast<int>(rank);
  if (!in_farewell() && !(is_itself && may_say_farewell())) {
    liveness_.left(rank);
    return set_failure(std::move(failure));
  }
  say_farewell_to(
      {.rank = static_cast<int>(rank), .kind = LossKind::gone, .reason = failure.message});
}

bool Control::is_lost(int rank) const {
  const std::lock_guard lock(mutex_);
  return farewell_.is_lost(rank);
}

bool Control::may_say_farewell() const {
  const std::lock_guard lock(mutex_);
  return farewell_limit_.has_value();
}

void Control::say_farewell_to(const frames::News& news) {
  if (is_lost(news.rank)) return;
  const auto claim = lose(news);
  if (!claim) {
    return set_failure(
        {.code = ExitCode::peer_lost, .rank = news.rank, .lost = true, .message = news.reason});
  }
  links_.send_to_all(frames::news(news));  // to the lost one, too: it must not go on
  links_.send_to_all(frames::claim(*claim));
  liveness_.lost(static_cast<std::size_t>(news.rank));
  box_.lose(static_cast<std::size_t>(news.rank));
  lost_workers_->add(news.rank);
}

// Returns what this worker claims from now on; nothing if the loss fails the run instead.
std::optional<Farewell::Claim> Control::lose(const frames::News& news) {
  const std::lock_guard lock(mutex_);
  if (!farewell_limit_ || news.rank == rank_) return std::nullopt;
  if (!farewell_.begun()) {
    farewell_ends_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(*farewell_limit_);
    lost_at_ = std::chrono::system_clock::now();
    if (news.kind == LossKind::silent)
      lost_at_ -= liveness_.unheard(static_cast<std::size_t>(news.rank), Clock::now());
  }
  changed_.notify_all();
  return farewell_.lose(news.rank, news.kind, news.reason, progress_.position().step);
}

void Control::note_gone(std::size_t rank) {
  const std::lock_guard lock(mutex_);
  farewell_.is_gone(static_cast<int>(rank));
  changed_.notify_all();
}

// Those for whom the others have waited long enough.
std::vector<int> Control::late() {
  const std::lock_guard lock(mutex_);
  if (Clock::now() >= saving_ends_) return gathers_ ? box_.missing(*gathers_) : std::vector<int>();
  if (Clock::now() < farewell_ends_) return {};
  const auto more = std::chrono::duration_cast<Clock::duration>(*farewell_limit_ / kSavesLate);
  saving_ends_ = farewell_ends_ + std::min<Clock::duration>(more, kMostSavesLate);
  farewell_ends_ = Clock::time_point::max();
  return farewell_.late();
}

// Called all the time; does something once a farewell takes too long.
void Control::leave_late_behind() {
  for (const int rank : late()) {
    const bool quiet = rank != rank_ && liveness_.is_quiet(static_cast<std::size_t>(rank));
    say_farewell_to({.rank = rank,
                     .kind = quiet ? LossKind::silent : LossKind::gone,
                     .reason = "worker " + std::to_string(rank) +
                               " did not finish its step in time (parallel.farewell_s)"});
  }
}

void Control::pass_on_stop_requests() {
  while (const auto request = stop_requests_.take(Clock::now())) {
    if (request->at_once) {
      set_failure({.code = in_farewell() ? ExitCode::peer_lost : ExitCode::stopped,
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
  on_failure_(failure, reports(failure));
  box_.fail(failure.code, failure.message);
  const std::lock_guard lock(mutex_);
  failure_told_ = true;
  changed_.notify_all();
}

// In a farewell the lowest worker that is left speaks; one that fails or has been left behind says
// why it ends.
bool Control::reports(const Failure& failure) const {
  if (!in_farewell()) return liveness_.reports(failure);
  return failure.rank == rank_ || farewell().speaker() == rank_;
}

// First sends the bytes that were given to gathers, because the others wait for them.
void Control::say_goodbye() {
  send_given();
  links_.send_to_all(frames::leave());
  const auto deadline = Clock::now() + kGoodbyes;
  while (links_.has_unsent() && Clock::now() < deadline) listen(100ms);
}

}  // namespace decent
