#pragma once
// TCP connections as owned file descriptors, and the few calls on them that the control plane
// needs. No torch here.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace decent {

using Deadline = std::chrono::steady_clock::time_point;

/// Owns a file descriptor; closes it when it goes.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() { close(); }

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close();
  /// Gives the descriptor away.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Where a socket can be reached: a numeric IPv4 or IPv6 address and a port.
struct Endpoint {
  std::string address;
  int port = 0;
};

/// Listens on `address`, on a free port where none is given. All functions here throw
/// std::system_error, which says what failed; running out of time is ETIMEDOUT.
Socket listen_on(const std::string& address, int port = 0);
int port_of(const Socket& socket);

Socket connect_to(const Endpoint& endpoint, Deadline deadline);
Socket accept_from(const Socket& listener, Deadline deadline);

/// All bytes or an error; a peer that closes before the last byte is ECONNRESET.
void send_all(const Socket& socket, std::span<const char> bytes, Deadline deadline);
void receive_all(const Socket& socket, std::span<char> bytes, Deadline deadline);

}  // namespace decent
