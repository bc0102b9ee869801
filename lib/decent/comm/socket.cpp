#include "decent/comm/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace decent {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::system_error(error, std::generic_category(), what);
}

int milliseconds_until(Deadline deadline) {
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

void wait_for(const Socket& socket, short events, const std::string& what, Deadline deadline) {
  pollfd entry{.fd = socket.descriptor(), .events = events, .revents = 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, milliseconds_until(deadline));
    if (ready > 0) return;
    if (ready == 0) fail(what, ETIMEDOUT);
    if (errno != EINTR) fail(what, errno);
  }
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses numeric(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) {
    fail("'" + address + "' is no numeric address", EINVAL);
  }
  return {list, &::freeaddrinfo};
}

Socket make_socket(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) fail("socket", errno);
  // The messages are short and must not wait for one another.
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Socket listen_on(const std::string& address, int port) {
  const Addresses found = numeric(address, port);
  Socket socket = make_socket(*found);
  // A port that a run has just left may be taken again at once.
  const int on = 1;
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.descriptor(), found->ai_addr, found->ai_addrlen) != 0) {
    fail("listen on " + address, errno);
  }
  if (::listen(socket.descriptor(), SOMAXCONN) != 0) fail("listen on " + address, errno);
  return socket;
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("getsockname", errno);
  }
  const bool v6 = address.ss_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                  : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Socket connect_to(const Endpoint& endpoint, Deadline deadline) {
  const Addresses found = numeric(endpoint.address, endpoint.port);
  const std::string what = "connect to " + endpoint.address;
  Socket socket = make_socket(*found);
  if (::connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) fail(what, errno);
  wait_for(socket, POLLOUT, what, deadline);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) fail(what, error);
  return socket;
}

Socket accept_from(const Socket& listener, Deadline deadline) {
  for (;;) {
    wait_for(listener, POLLIN, "wait for a connection", deadline);
    Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.open()) {
      const int on = 1;
      ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return socket;
    }
    // ECONNABORTED: who wanted to connect has given up meanwhile.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) fail("accept", errno);
  }
}

void send_all(const Socket& socket, std::span<const char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_for(socket, POLLOUT, "send", deadline);
    } else if (errno != EINTR) {
      fail("send", errno);
    }
  }
}

void receive_all(const Socket& socket, std::span<char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(received));
    } else if (received == 0) {
      fail("receive", ECONNRESET);
    } else if (errno == EAGAIN) {
      wait_for(socket, POLLIN, "receive", deadline);
    } else if (errno != EINTR) {
      fail("receive", errno);
    }
  }
}

}  // namespace decent
