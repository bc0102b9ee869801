#include "decent/comm/control.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "decent/comm/control_frames.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

// A second signal so long after the first is a user (or launcher) who does not want to wait.
constexpr auto kSecondSignal = 3s;
// How long a worker that ends listens for others that end at the same time.
constexpr auto kSettle = 100ms;
// How long an error of an operation with peers waits for the news of who was lost.
constexpr auto kNewsOfLoss = 2s;
// A peer that takes nothing has its beats left out, so that memory stays bounded.
constexpr std::size_t kFullOutbox = 4096;
// How long goodbyes, and what was given before them, may take to reach the kernel.
constexpr auto kGoodbyes = 10s;

}  // namespace

Control::Control(ControlOptions options)
    : rank_(options.rank),
      on_failure_(std::move(options.on_failure)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      launcher_(std::move(options.launcher)),
      box_(options.connections.size()),
      timeout_s_(options.timeout.count()),
      stop_(options.connections.size()) {
  if (!wake_.open()) throw std::system_error(errno, std::generic_category(), "eventfd");
  for (std::size_t rank = 0; rank < options.connections.size(); ++rank) {
    Peer peer;
    peer.host = options.hosts.at(rank);
    peer.link = PeerLink(std::move(options.connections[rank]));
    peer.heard = Clock::now();
    peers_.push_back(std::move(peer));
  }
  thread_ = std::thread([this] { run(); });
}

Control::~Control() { stop_thread(End::abandon); }

void Control::leave() { stop_thread(End::leave); }

void Control::stop_thread(End end) {
  {
    const std::lock_guard lock(mutex_);
    if (end_ == End::none) end_ = end;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void Control::set_timeout(std::chrono::duration<double> timeout) {
  timeout_s_ = timeout.count();
  wake();
}

void Control::wake() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
}

// ---- called by the training thread ----------------------------------------------------------

void Control::go_on_from(std::int64_t step) { progress_.begin_step(step); }

bool Control::begin_step(std::int64_t t) {
  std::unique_lock lock(mutex_);
  if (stop_.is_open()) {
    changed_.wait(lock, [&] { return stop_.is_settled() || failure_; });
    if (!stop_.is_settled() || t > stop_.stop().last_step) return false;
  }
  progress_.begin_step(t);
  return true;
}

Stop Control::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_.stop();
}

std::vector<std::string> Control::gather(const std::string& topic, std::string own) {
  {
    const std::lock_guard lock(mutex_);
    to_send_.push_back(frames::given({topic, own}));
  }
  box_.give(static_cast<std::size_t>(rank_), topic, std::move(own));
  wake();
  return box_.take(topic);
}

void Control::wait_until_left(int rank, std::chrono::milliseconds most) {
  box_.wait_closed(static_cast<std::size_t>(rank), most);
}

void Control::on_launcher_end(LauncherEnd what) {
  on_launcher_end_ = what;
  wake();
}

void Control::request_stop(int signal) noexcept {
  last_signal_.store(signal, std::memory_order_relaxed);
  signals_.fetch_add(1, std::memory_order_release);
  wake();
}

void Control::fail(Failure failure) {
  set_failure(std::move(failure));
  wake();
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
    const auto awake = awake_since_last_check();
    check_silence(awake);
    check_stall(awake);
    pass_on_signals();
    pass_on_launcher_end();
    send_given();
    std::optional<Failure> failure;
    {
      const std::lock_guard lock(mutex_);
      failure = failure_;
    }
    if (failure) {
      announce_failure(*failure);
      return;
    }
  }
  if (end() == End::leave) say_goodbye();
}

// What was given before is sent first: the others wait for it.
void Control::say_goodbye() {
  send_given();
  send_to_all(frames::leave());
  const auto deadline = Clock::now() + kGoodbyes;
  const auto waiting = [](const Peer& peer) { return peer.link.open() && peer.link.waiting() > 0; };
  while (std::any_of(peers_.begin(), peers_.end(), waiting) && Clock::now() < deadline) {
    listen(100ms);
  }
}

void Control::send_given() {
  std::vector<std::string> given;
  {
    const std::lock_guard lock(mutex_);
    given.swap(to_send_);
  }
  for (const std::string& frame : given) send_to_all(frame);
}

Control::Clock::duration Control::beat_interval() const {
  const std::chrono::duration<double> timeout(timeout_s_.load());
  const auto shortest = std::min(timeout, progress_.limit().value_or(timeout));
  const std::chrono::duration<double> interval(std::clamp(shortest.count() / 8, 0.01, 1.0));
  return std::chrono::duration_cast<Clock::duration>(interval);
}

// Waits for something to happen, `most` at the longest, and takes what came.
void Control::listen(std::chrono::milliseconds most) {
  std::vector<pollfd> entries = {{.fd = wake_.descriptor(), .events = POLLIN, .revents = 0}};
  entries.push_back({.fd = launcher_.descriptor(), .events = POLLIN, .revents = 0});
  for (const Peer& peer : peers_) {
    const int events = peer.link.waiting() == 0 ? POLLIN : POLLIN | POLLOUT;
    entries.push_back({.fd = peer.link.descriptor(),  // -1 is passed over
                       .events = static_cast<short>(events),
                       .revents = 0});
  }
  if (::poll(entries.data(), entries.size(), static_cast<int>(most.count())) <= 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_.descriptor(), &count, sizeof count);
  if (entries[1].revents != 0) {
    launcher_ended_ = true;
    launcher_.close();
  }
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const short events = entries[rank + 2].revents;
    if ((events & POLLOUT) != 0) peers_[rank].link.flush();
    if ((events & ~POLLOUT) != 0) receive(rank);
  }
}

void Control::receive(std::size_t rank) {
  Peer& peer = peers_[rank];
  const auto received = peer.link.receive([&](std::string_view frame) { handle(rank, frame); });
  if (received.anything) {
    peer.heard = Clock::now();
    peer.quiet = {};
  }
  if (!received.ended || peer.left) return;
  lose(rank, received.error == 0
                 ? "its connection closed"
                 : "its connection broke: " + std::string(std::strerror(received.error)));
}

void Control::handle(std::size_t rank, std::string_view frame) {
  Peer& peer = peers_[rank];
  if (const auto position = frames::read_beat(frame)) {
    peer.position = *position;
  } else if (const auto stop = frames::read_stop(frame)) {
    join_stop(stop->signal, stop->rank);
  } else if (const auto cap = frames::read_cap(frame)) {
    const std::lock_guard lock(mutex_);
    stop_.promise(rank, *cap);
    changed_.notify_all();
  } else if (auto failure = frames::read_failure(frame)) {
    peer.left = true;
    set_failure(std::move(*failure));
  } else if (auto given = frames::read_given(frame)) {
    box_.give(rank, given->topic, std::move(given->bytes));
  } else if (frame == "L") {
    peer.left = true;
    box_.close(rank);
  }
}

void Control::lose(std::size_t rank, const std::string& how) {
  Peer& peer = peers_[rank];
  peer.alive = false;
  const std::string ago = seconds_text(Clock::now() - peer.heard);
  set_failure({.code = ExitCode::peer_lost,
               .rank = static_cast<int>(rank),
               .lost = true,
               .message = "lost worker " + std::to_string(rank) + " on '" + peer.host + "': " +
                          how + ". It was last heard of " + ago + " ago, " + peer.position.text()});
}

// Only time in which this worker itself was awake counts: one that was stopped and goes on must not
// take all others for silent, or itself for stalled.
Control::Clock::duration Control::awake_since_last_check() {
  const auto now = Clock::now();
  return std::min(now - std::exchange(last_check_, now), 2 * beat_interval());
}

void Control::check_silence(Clock::duration awake) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.link.open() || peer.left) continue;
    peer.quiet += awake;
    if (peer.quiet < std::chrono::duration<double>(timeout_s_.load())) continue;
    lose(rank, "silent for " + seconds_text(peer.quiet) + " (parallel.timeout_s)");
  }
}

// The last beat of a peer may be old, and the peer further by now, but never further behind.
void Control::check_stall(Clock::duration awake) {
  const auto stall = progress_.look(awake);
  if (!stall) return;
  const Position own = stall->position;
  std::vector<std::string> workers;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    const bool is_own = static_cast<int>(rank) == rank_;
    if (!is_own && (!peer.link.open() || peer.left)) continue;
    if (!is_own && peer.position.is_behind(own)) return;
    if (is_own || !own.is_behind(peer.position))
      workers.push_back(std::to_string(rank) + " on '" + peer.host + "'");
  }
  set_failure(
      {.code = ExitCode::peer_lost, .rank = -1, .lost = false, .message = stall->message(workers)});
}

void Control::beat_if_due() {
  const auto now = Clock::now();
  if (now < next_beat_) return;
  next_beat_ = now + beat_interval();
  const std::string frame = frames::beat(progress_.position());
  for (Peer& peer : peers_) {
    if (peer.link.waiting() < kFullOutbox) peer.link.send(frame);
  }
}

void Control::pass_on_signals() {
  const int count = signals_.load(std::memory_order_acquire);
  if (count == signals_seen_) return;
  const int signal = last_signal_.load(std::memory_order_relaxed);
  const auto now = Clock::now();
  if (std::exchange(signals_seen_, count) == 0) {
    first_signal_ = now;
    join_stop(signal, rank_);
  } else if (now - first_signal_ >= kSecondSignal) {
    set_failure({.code = ExitCode::stopped,
                 .rank = rank_,
                 .lost = false,
                 .message = "stopped at once by a second signal (" + signal_name(signal) + ")"});
  }
}

void Control::pass_on_launcher_end() {
  if (!launcher_ended_) return;
  switch (on_launcher_end_.load()) {
    case LauncherEnd::nothing:
      return;
    case LauncherEnd::stop:
      join_stop(/*signal=*/0, rank_);
      break;
    case LauncherEnd::fail:
      set_failure({.code = ExitCode::stopped,
                   .rank = rank_,
                   .lost = false,
                   .message = "torchrun, which started this program, has ended"});
      break;
  }
  launcher_ended_ = false;  // once is enough
}

void Control::join_stop(int signal, int rank) {
  const std::lock_guard lock(mutex_);
  if (!stop_.open(signal, rank)) return;
  send_to_all(frames::stop({signal, rank}));
  const std::int64_t step = progress_.position().step;
  send_to_all(frames::cap(step));
  stop_.promise(static_cast<std::size_t>(rank_), step);
  changed_.notify_all();
}

// The news goes out before anything else: a peer that sees this worker's connections close must
// know why.
void Control::announce_failure(const Failure& failure) {
  send_to_all(frames::failure(failure));
  const auto settled = Clock::now() + kSettle;
  while (Clock::now() < settled) {
    listen(std::chrono::ceil<std::chrono::milliseconds>(settled - Clock::now()));
  }
  on_failure_(failure, reports(failure));
  box_.fail(failure.code, failure.message);
  const std::lock_guard lock(mutex_);
  failure_told_ = true;
  changed_.notify_all();
}

// The first worker that is still there; one that was given up also tells its own user why it ends.
// Workers of one machine go silent together, but their last beats came at different times: where
// one is lost, others who have been silent for some beats will tell nobody here either.
bool Control::reports(const Failure& failure) const {
  if (failure.lost && failure.rank == rank_) return true;
  const std::chrono::duration<double> some_beats(timeout_s_.load() / 2);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(rank_); ++rank) {
    const Peer& peer = peers_[rank];
    const bool lost = failure.lost && failure.rank == static_cast<int>(rank);
    const bool silent = failure.lost && !peer.left && peer.quiet > some_beats;
    if (peer.alive && !lost && !silent) return false;
  }
  return true;
}

void Control::send_to_all(const std::string& frame) {
  for (Peer& peer : peers_) peer.link.send(frame);
}

}  // namespace decent
