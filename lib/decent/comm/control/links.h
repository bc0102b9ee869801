#pragma once
// The connections of one worker's control plane to its peers: waiting for what comes, frames in and
// frames out. What frames mean is not known here. A part of Control.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/comm/control/peer_link.h"
#include "decent/comm/socket.h"

namespace decent {

/// What happened on the connection to worker `rank`; called in listen(), in this order.
struct LinkEvents {
  std::function<void(std::size_t rank, std::string_view content)> frame;
  /// Bytes came, whether or not they made a frame whole.
  std::function<void(std::size_t rank)> heard;
  /// Nothing more will come. `error`: errno of a connection that broke; 0: the peer closed it.
  std::function<void(std::size_t rank, int error)> ended;
};

/// Threads: the control thread's alone, but for wake().
class Links {
 public:
  /// By rank; a closed socket, as that of the worker itself, takes everything and gives nothing.
  /// Throws std::system_error.
  Links(std::vector<Socket> connections, LinkEvents events);

  std::size_t size() const { return peers_.size(); }

  /// Waits until something happens, `most` at the longest, and tells of it. Returns whether the
  /// descriptor `watched` is readable; -1 is one that never is.
  bool listen(std::chrono::milliseconds most, int watched = -1);

  /// Ends a listen() that is under way, or else the next one. Any thread; async-signal-safe.
  void wake() const noexcept;

  /// What the kernel does not take at once goes out in later calls of listen().
  void send_to_all(const std::string& frame);
  /// The same without peers that are far behind with what they were sent, so that memory stays
  /// bounded: for frames that the next one makes up for.
  void offer_to_all(const std::string& frame);
  /// Whether a peer that is still connected has not been sent all.
  bool has_unsent() const;

 private:
  void receive(std::size_t rank);
  void drain_wake() const;

  std::vector<PeerLink> peers_;  // by rank
  LinkEvents events_;
  Socket wake_;  // an eventfd
};

}  // namespace decent
