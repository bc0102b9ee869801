#include "decent/comm/control/peer_link.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "decent/comm/control/control_frames.h"

namespace decent {

void PeerLink::send(const std::string& frame) {
  if (!open()) return;
  outbox_ += frame;
  flush();
}

void PeerLink::flush() {
  std::size_t taken = 0;
  while (taken < outbox_.size()) {
    const ssize_t sent = ::send(connection_.descriptor(), outbox_.data() + taken,
                                outbox_.size() - taken, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) taken = outbox_.size();
    if (sent <= 0) break;
    taken += static_cast<std::size_t>(sent);
  }
  outbox_.erase(0, taken);
}

PeerLink::Received PeerLink::read_all() {
  Received received;
  std::array<char, 1 << 14> bytes;
  for (;;) {
    const ssize_t count = ::recv(connection_.descriptor(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      inbox_.append(bytes.data(), static_cast<std::size_t>(count));
      received.anything = true;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    received.error = count == 0 ? 0 : errno;
    received.ended = received.error != EAGAIN && received.error != EWOULDBLOCK;
    return received;
  }
}

// The last frames of a peer count even if it is gone by now.
PeerLink::Received PeerLink::receive(const std::function<void(std::string_view)>& handle) {
  const Received received = read_all();
  std::size_t used = 0;
  while (const auto frame = frames::next(std::string_view(inbox_).substr(used))) {
    handle(frame->content);
    used += frame->bytes;
  }
  inbox_.erase(0, used);
  if (received.ended) connection_.close();
  return received;
}

}  // namespace decent
