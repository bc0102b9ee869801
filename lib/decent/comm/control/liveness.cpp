#include "decent/comm/control/liveness.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "decent/core/text.h"

namespace decent {

// The kernel closes or resets the connections of a process that ends. Other errors come from the
// network, behind which the worker may still be there.
LossKind kind_of_end(int error) {
  const bool gone = error == 0 || error == ECONNRESET || error == EPIPE;
  return gone ? LossKind::gone : LossKind::silent;
}

std::string Loss::message() const {
  return "lost worker " + std::to_string(rank) + " on '" + host + "': " + how +
         ". It was last heard of " + seconds_text(unheard) + " ago, " + position.text();
}

Liveness::Liveness(int rank, const std::vector<std::string>& hosts, OwnProgress& own,
                   std::chrono::duration<double> timeout, std::string timeout_setting,
                   Clock::time_point now)
    : rank_(rank),
      own_(own),
      timeout_s_(timeout.count()),
      timeout_setting_(std::move(timeout_setting)),
      last_check_(now) {
  for (const std::string& host : hosts) {
    Peer peer;
    peer.host = host;
    peer.heard = now;
    peers_.push_back(std::move(peer));
  }
}

std::chrono::duration<double> Liveness::timeout() const {
  return std::chrono::duration<double>(timeout_s_.load());
}

Liveness::Clock::duration Liveness::beat_interval() const {
  const auto shortest = std::min(timeout(), own_.limit().value_or(timeout()));
  const std::chrono::duration<double> interval(std::clamp(shortest.count() / 8, 0.01, 1.0));
  return std::chrono::duration_cast<Clock::duration>(interval);
}

void Liveness::heard(std::size_t rank, Clock::time_point now) {
  peers_[rank].heard = now;
  peers_[rank].quiet = {};
}

std::optional<Loss> Liveness::ended(std::size_t rank, int error, Clock::time_point now) {
  if (peers_[rank].left || !peers_[rank].alive) return std::nullopt;
  return lose(rank, kind_of_end(error),
              error == 0 ? "its connection closed"
                         : "its connection broke: " + std::string(std::strerror(error)),
              now);
}

Loss Liveness::lose(std::size_t rank, LossKind kind, std::string how, Clock::time_point now) {
  Peer& peer = peers_[rank];
  peer.alive = false;
  return {.rank = static_cast<int>(rank),
          .host = peer.host,
          .how = std::move(how),
          .unheard = now - peer.heard,
          .position = peer.position,
          .kind = kind};
}

bool Liveness::is_watched(std::size_t rank) const {
  return !is_own(rank) && peers_[rank].alive && !peers_[rank].left;
}

Liveness::Findings Liveness::check(Clock::time_point now) {
  const auto awake = std::min(now - std::exchange(last_check_, now), 2 * beat_interval());
  Findings findings{.silent = find_silent(awake, now), .hanging = std::nullopt};
  if (const auto stall = own_.look(awake)) findings.hanging = find_hanging(*stall);
  return findings;
}

std::vector<Loss> Liveness::find_silent(Clock::duration awake, Clock::time_point now) {
  std::vector<Loss> silent;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!is_watched(rank)) continue;
    Peer& peer = peers_[rank];
    peer.quiet += awake;
    if (peer.quiet < timeout()) continue;
    silent.push_back(lose(rank, LossKind::silent,
                          "silent for " + seconds_text(peer.quiet) + " (" + timeout_setting_ + ")",
                          now));
  }
  return silent;
}

// nullopt if a peer is behind, because this worker waits for it. A peer may have advanced since its
// last beat, but cannot have fallen back.
std::optional<Liveness::Hanging> Liveness::find_hanging(const Stall& stall) const {
  const Position own = stall.position;
  Hanging hanging;
  std::vector<std::string> workers;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (!is_own(rank) && !is_watched(rank)) continue;
    if (!is_own(rank) && peer.position.is_behind(own)) return std::nullopt;
    if (!is_own(rank) && own.is_behind(peer.position)) continue;
    hanging.ranks.push_back(static_cast<int>(rank));
    workers.push_back(std::to_string(rank) + " on '" + peer.host + "'");
  }
  hanging.message = stall.message(workers);
  return hanging;
}

// Workers of one machine go silent together, but their last beats came at different times. So if
// one is lost, others that have been silent for some beats cannot tell the user either.
bool Liveness::reports(const Failure& failure) const {
  if (failure.lost && failure.rank == rank_) return true;
  const auto some_beats = timeout() / 2;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(rank_); ++rank) {
    const Peer& peer = peers_[rank];
    const bool lost = failure.lost && failure.rank == static_cast<int>(rank);
    const bool silent = failure.lost && !peer.left && peer.quiet > some_beats;
    if (peer.alive && !lost && !silent) return false;
  }
  return true;
}

}  // namespace decent
