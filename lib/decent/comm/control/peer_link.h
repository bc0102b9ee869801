#pragma once
// A connection that never blocks, carrying frames: a part of Control.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "decent/comm/socket.h"

namespace decent {

/// Threads: the control thread's alone.
class PeerLink {
 public:
  PeerLink() = default;
  /// A closed socket makes a closed link, which takes everything and gives nothing.
  explicit PeerLink(Socket connection) : connection_(std::move(connection)) {}

  bool open() const { return connection_.open(); }
  int descriptor() const { return connection_.descriptor(); }
  void close() { connection_.close(); }

  /// Bytes that the kernel has not taken yet.
  std::size_t waiting() const { return outbox_.size(); }
  void send(const std::string& frame);
  /// Errors are left to receive(), which sees what the peer said last.
  void flush();

  struct Received {
    bool anything = false;
    bool ended = false;  // nothing more will come
    int error = 0;       // errno of a connection that broke; 0: the peer closed it
  };
  /// Takes what has come and hands on every whole frame of it.
  Received receive(const std::function<void(std::string_view content)>& handle);

 private:
  Received read_all();

  Socket connection_;
  std::string inbox_;   // received, not yet a whole frame
  std::string outbox_;  // not yet taken by the kernel
};

}  // namespace decent
