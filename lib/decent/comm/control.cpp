#include "decent/comm/control.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name);
}

}  // namespace

std::string_view text_of(Operation operation) {
  switch (operation) {
    case Operation::starting:
      return "starting";
    case Operation::running:
      return "running";
    case Operation::waiting_for_data:
      return "waiting for data";
    case Operation::forward:
      return "in forward";
    case Operation::backward:
      return "in backward";
    case Operation::averaging:
      return "averaging";
    case Operation::evaluating:
      return "evaluating";
    case Operation::exporting:
      return "exporting";
    case Operation::saving:
      return "saving a checkpoint";
    case Operation::loading:
      return "loading a checkpoint";
  }
  return "at work";
}

std::string Stop::signal_text() const { return signal_name(signal); }

Control::Control(ControlOptions options)
    : rank_(options.rank),
      on_failure_(std::move(options.on_failure)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timeout_s_(options.timeout.count()) {
  if (!wake_.open()) throw std::system_error(errno, std::generic_category(), "eventfd");
  for (std::size_t rank = 0; rank < options.connections.size(); ++rank) {
    Peer peer;
    peer.host = options.hosts.at(rank);
    peer.connection = std::move(options.connections[rank]);
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

void Control::go_on_from(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  in_progress_ = step;
}

bool Control::begin_step(std::int64_t t) {
  std::unique_lock lock(mutex_);
  if (stop_) {
    changed_.wait(lock, [&] { return stop_agreed_ || failure_; });
    if (!stop_agreed_ || t > stop_->last_step) return false;
  }
  in_progress_ = t;
  return true;
}

Stop Control::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_.value_or(Stop{});
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
    check_silence();
    pass_on_signals();
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
  if (end() == End::leave) send_to_all(frames::leave());
}

Control::Clock::duration Control::beat_interval() const {
  const std::chrono::duration<double> interval(std::clamp(timeout_s_.load() / 8, 0.01, 1.0));
  return std::chrono::duration_cast<Clock::duration>(interval);
}

// Waits for something to happen, `most` at the longest, and takes what came.
void Control::listen(std::chrono::milliseconds most) {
  std::vector<pollfd> entries = {{.fd = wake_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const Peer& peer : peers_) {
    const int events = peer.outbox.empty() ? POLLIN : POLLIN | POLLOUT;
    entries.push_back({.fd = peer.connection.descriptor(),  // -1 is passed over
                       .events = static_cast<short>(events),
                       .revents = 0});
  }
  if (::poll(entries.data(), entries.size(), static_cast<int>(most.count())) <= 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_.descriptor(), &count, sizeof count);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if ((entries[rank + 1].revents & POLLOUT) != 0) flush(peers_[rank]);
    if ((entries[rank + 1].revents & ~POLLOUT) != 0) receive(rank);
  }
}

void Control::receive(std::size_t rank) {
  Peer& peer = peers_[rank];
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t count = ::recv(peer.connection.descriptor(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      peer.inbox.append(bytes.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    const int error = count == 0 ? 0 : errno;
    take_frames(rank);  // what a peer said last counts, also where it has gone since
    if (error == EAGAIN || error == EWOULDBLOCK) return;
    peer.connection.close();
    if (!peer.left) {
      lose(rank, error == 0 ? "its connection closed"
                            : "its connection broke: " + std::string(std::strerror(error)));
    }
    return;
  }
}

void Control::take_frames(std::size_t rank) {
  Peer& peer = peers_[rank];
  std::size_t used = 0;
  while (const auto frame = frames::next(std::string_view(peer.inbox).substr(used))) {
    peer.heard = Clock::now();
    peer.quiet = {};
    handle(rank, frame->content);
    used += frame->bytes;
  }
  peer.inbox.erase(0, used);
}

void Control::handle(std::size_t rank, std::string_view frame) {
  Peer& peer = peers_[rank];
  if (const auto beat = frames::read_beat(frame)) {
    peer.operation = beat->operation;
    peer.step = beat->step;
  } else if (const auto stop = frames::read_stop(frame)) {
    join_stop(stop->signal, stop->rank);
  } else if (const auto cap = frames::read_cap(frame)) {
    peer.cap = *cap;
    settle_stop();
  } else if (auto failure = frames::read_failure(frame)) {
    peer.left = true;
    set_failure(std::move(*failure));
  } else if (frame == "L") {
    peer.left = true;
  }
}

void Control::lose(std::size_t rank, const std::string& how) {
  Peer& peer = peers_[rank];
  peer.alive = false;
  const std::string ago = seconds_text(Clock::now() - peer.heard);
  const std::string step =
      peer.operation == Operation::running ? "" : "in step " + std::to_string(peer.step) + ", ";
  set_failure({.code = ExitCode::peer_lost,
               .rank = static_cast<int>(rank),
               .lost = true,
               .message = "lost worker " + std::to_string(rank) + " on '" + peer.host +
                          "': " + how + ". It was last heard of " + ago + " ago, " + step +
                          std::string(text_of(peer.operation))});
}

// Only time in which this worker itself was awake counts: one that was stopped and goes on must not
// take all others for silent.
void Control::check_silence() {
  const auto now = Clock::now();
  const auto awake = std::min(now - std::exchange(last_check_, now), 2 * beat_interval());
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.connection.open() || peer.left) continue;
    peer.quiet += awake;
    if (peer.quiet < std::chrono::duration<double>(timeout_s_.load())) continue;
    lose(rank, "silent for " + seconds_text(peer.quiet) + " (parallel.timeout_s)");
  }
}

void Control::beat_if_due() {
  const auto now = Clock::now();
  if (now < next_beat_) return;
  next_beat_ = now + beat_interval();
  std::int64_t step = 0;
  {
    const std::lock_guard lock(mutex_);
    step = in_progress_;
  }
  const std::string frame = frames::beat({operation_.load(std::memory_order_relaxed), step});
  for (Peer& peer : peers_) {
    if (peer.outbox.size() < kFullOutbox) send(peer, frame);
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

// Every worker promises to finish the step that it is in and to begin no other one; the last step
// of all is the highest of those. Whoever is behind goes on to it: nobody waits for a worker that
// waits for him.
void Control::join_stop(int signal, int rank) {
  std::int64_t cap = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    stop_ = Stop{.signal = signal, .rank = rank, .last_step = 0};
    cap = in_progress_;
  }
  peers_[static_cast<std::size_t>(rank_)].cap = cap;
  send_to_all(frames::stop({signal, rank}));
  send_to_all(frames::cap(cap));
  settle_stop();
}

void Control::settle_stop() {
  std::int64_t last = 0;
  for (const Peer& peer : peers_) {
    if (peer.cap < 0) return;
    last = std::max(last, peer.cap);
  }
  const std::lock_guard lock(mutex_);
  stop_->last_step = last;
  stop_agreed_ = true;
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
  for (Peer& peer : peers_) send(peer, frame);
}

void Control::send(Peer& peer, const std::string& frame) {
  if (!peer.connection.open()) return;
  peer.outbox += frame;
  flush(peer);
}

// Errors are left to the reader of the same connection, who sees what the peer said last.
void Control::flush(Peer& peer) {
  while (!peer.outbox.empty()) {
    const ssize_t sent =
        ::send(peer.connection.descriptor(), peer.outbox.data(), peer.outbox.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) peer.outbox.clear();
    if (sent <= 0) return;
    peer.outbox.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace decent
