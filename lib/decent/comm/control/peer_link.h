#pragma once
// A connection that never blocks, carrying frames: a part of Control.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "decent/comm/socket.h"

namespace decent {

/// Threads: only the control thread uses it.
class PeerLink {
 public:
  PeerLink() = default;
  /// A closed socket makes a closed link, which discards what is sent and receives nothing.
  explicit PeerLink(Socket connection) : connection_(std::move(connection)) {}

  bool open() const { return connection_.open(); }
  int descriptor() const { return connection_.descriptor(); }
  void close() { connection_.close(); }

  /// Bytes that the kernel has not taken yet.
  std::size_t waiting() const { return outbox_.size(); }
  void send(const std::string& frame);
  /// Ignores errors: receive() reports them, after the last bytes of the peer.
  void flush();

  struct Received {
    bool anything = false;
    bool ended = false;  // the connection has ended
    int error = 0;       // its errno if it broke, 0 if the peer closed it
  };
  /// Reads the bytes that have arrived, and calls `handle` for every complete frame.
  Received receive(const std::function<void(std::string_view content)>& handle);

 private:
  Received read_all();

  Socket connection_;
  std::string inbox_;   // received, not yet a whole frame
  std::string outbox_;  // not yet taken by the kernel
};

}  // namespace decent
