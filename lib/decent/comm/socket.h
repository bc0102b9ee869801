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

/// Owns a file descriptor and closes it when it is destroyed.
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
  /// Returns the descriptor and gives up its ownership.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Where a socket can be reached: a numeric IPv4 or IPv6 address and a port.
struct Endpoint {
  std::string address;
  int port = 0;
};

/// Listens on `address`; with port 0, on a free port. All functions here throw std::system_error,
/// whose text says what failed; its code is ETIMEDOUT after the deadline.
Socket listen_on(const std::string& address, int port = 0);
int port_of(const Socket& socket);

Socket connect_to(const Endpoint& endpoint, Deadline deadline);
Socket accept_from(const Socket& listener, Deadline deadline);

/// Send or receive all bytes. If the peer closes before the last byte, the error is ECONNRESET.
void send_all(const Socket& socket, std::span<const char> bytes, Deadline deadline);
void receive_all(const Socket& socket, std::span<char> bytes, Deadline deadline);

}  // namespace decent
