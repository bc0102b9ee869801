#include "decent/comm/control/links.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace decent {
namespace {

// A peer with more unsent bytes than this is offered nothing.
constexpr std::size_t kFullOutbox = 4096;

pollfd entry_of(int descriptor, int events = POLLIN) {  // poll() ignores -1
  return {.fd = descriptor, .events = static_cast<short>(events), .revents = 0};
}

}  // namespace

Links::Links(std::vector<Socket> connections, LinkEvents events)
    : events_(std::move(events)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.open()) throw std::system_error(errno, std::generic_category(), "eventfd");
  for (Socket& connection : connections) peers_.emplace_back(std::move(connection));
}

bool Links::listen(std::chrono::milliseconds most, int watched) {
  std::vector<pollfd> entries = {entry_of(wake_.descriptor()), entry_of(watched)};
  const std::size_t others = entries.size();
  for (const PeerLink& peer : peers_) {
    entries.push_back(entry_of(peer.descriptor(), peer.waiting() == 0 ? POLLIN : POLLIN | POLLOUT));
  }
  if (::poll(entries.data(), entries.size(), static_cast<int>(most.count())) <= 0) return false;
  drain_wake();
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const short events = entries[others + rank].revents;
    if ((events & POLLOUT) != 0) peers_[rank].flush();
    if ((events & ~POLLOUT) != 0) receive(rank);
  }
  return entries[1].revents != 0;
}

void Links::receive(std::size_t rank) {
  const auto received =
      peers_[rank].receive([&](std::string_view content) { events_.frame(rank, content); });
  if (received.anything) events_.heard(rank);
  if (received.ended) events_.ended(rank, received.error);
}

void Links::wake() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
}

void Links::drain_wake() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_.descriptor(), &count, sizeof count);
}

void Links::send_to_all(const std::string& frame) {
  for (PeerLink& peer : peers_) peer.send(frame);
}

void Links::offer_to_all(const std::string& frame) {
  for (PeerLink& peer : peers_) {
    if (peer.waiting() < kFullOutbox) peer.send(frame);
  }
}

bool Links::has_unsent() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const PeerLink& peer) { return peer.open() && peer.waiting() > 0; });
}

}  // namespace decent
