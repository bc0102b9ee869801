#pragma once
// The connections of one worker's control plane to its peers: they receive and send frames. They do
// not know what frames mean. A part of Control.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/comm/control/peer_link.h"
#include "decent/comm/socket.h"

namespace decent {

/// Called in listen() for what happened on the connection to worker `rank`, in this order.
struct LinkEvents {
  std::function<void(std::size_t rank, std::string_view content)> frame;
  /// Bytes were received, whether or not they completed a frame.
  std::function<void(std::size_t rank)> heard;
  /// The connection has ended. `error`: its errno if it broke, 0 if the peer closed it.
  std::function<void(std::size_t rank, int error)> ended;
};

/// Threads: only the control thread uses it, except for wake().
class Links {
 public:
  /// `connections` by rank. A closed socket, such as the worker's own, discards what is sent and
  /// receives nothing. Throws std::system_error.
  Links(std::vector<Socket> connections, LinkEvents events);

  std::size_t size() const { return peers_.size(); }

  /// Waits for at most `most` until something happens, and calls the events. Returns whether the
  /// descriptor `watched` is readable (-1: none).
  bool listen(std::chrono::milliseconds most, int watched = -1);

  /// Makes the current listen(), or else the next one, return. Any thread; async-signal-safe.
  void wake() const noexcept;

  /// Bytes that the kernel does not take at once are sent in later calls of listen().
  void send_to_all(const std::string& frame);
  /// The same, but skips peers with many unsent bytes, so that memory stays bounded. For frames
  /// that a later frame replaces.
  void offer_to_all(const std::string& frame);
  /// Whether bytes for a connected peer are still unsent.
  bool has_unsent() const;

 private:
  void receive(std::size_t rank);
  void drain_wake() const;

  std::vector<PeerLink> peers_;  // by rank
  LinkEvents events_;
  Socket wake_;  // an eventfd
};

}  // namespace decent
