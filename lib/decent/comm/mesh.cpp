#include "decent/comm/mesh.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <system_error>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// How long a connection from elsewhere may keep a listening worker waiting for its first bytes.
constexpr auto kHelloTime = std::chrono::seconds(5);
constexpr std::size_t kRankDigits = 8;

std::string hello_of(int rank, const std::string& token) {
  std::string digits = std::to_string(rank);
  digits.insert(0, kRankDigits - digits.size(), '0');
  return token + digits;
}

// The rank in the greeting of a connection; nullopt without the right token.
std::optional<std::size_t> rank_in(const Socket& socket, const std::string& token,
                                   Deadline deadline) {
  std::string hello(token.size() + kRankDigits, '\0');
  try {
    receive_all(socket, hello, std::min(deadline, std::chrono::steady_clock::now() + kHelloTime));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  std::size_t rank = 0;
  const char* end = hello.data() + hello.size();
  const auto [stop, failed] = std::from_chars(hello.data() + token.size(), end, rank);
  if (!hello.starts_with(token) || failed != std::errc() || stop != end) return std::nullopt;
  return rank;
}

Socket connect_to_peer(int rank, std::size_t peer, const Endpoint& endpoint,
                       const std::string& token, Deadline deadline) {
  try {
    Socket socket = connect_to(endpoint, deadline);
    send_all(socket, hello_of(rank, token), deadline);
    return socket;
  } catch (const std::system_error& error) {
    throw PeerLost("worker " + std::to_string(rank) + " cannot connect to worker " +
                   std::to_string(peer) + " at " + endpoint.address + ":" +
                   std::to_string(endpoint.port) + ": " + error.code().message() +
                   ".\nGLOO_SOCKET_IFNAME chooses the network interface that workers offer each "
                   "other.");
  }
}

[[noreturn]] void report_missing(int rank, const std::vector<Socket>& sockets) {
  std::vector<std::string> missing;
  for (std::size_t peer = static_cast<std::size_t>(rank) + 1; peer < sockets.size(); ++peer) {
    if (!sockets[peer].open()) missing.push_back(std::to_string(peer));
  }
  throw PeerLost("worker " + std::to_string(rank) + " was not reached by worker " + join(missing) +
                 " in time.\nGLOO_SOCKET_IFNAME chooses the network interface that workers offer "
                 "each other.");
}

}  // namespace

std::vector<Socket> connect_mesh(int rank, const std::vector<Endpoint>& endpoints,
                                 const Socket& listener, const std::string& token,
                                 Deadline deadline) {
  std::vector<Socket> sockets(endpoints.size());
  const auto own = static_cast<std::size_t>(rank);
  for (std::size_t peer = 0; peer < own; ++peer) {
    sockets[peer] = connect_to_peer(rank, peer, endpoints[peer], token, deadline);
  }
  for (std::size_t left = endpoints.size() - own - 1; left > 0;) {
    Socket socket;
    try {
      socket = accept_from(listener, deadline);
    } catch (const std::system_error&) {
      report_missing(rank, sockets);
    }
    const auto peer = rank_in(socket, token, deadline);
    if (!peer || *peer <= own || *peer >= sockets.size() || sockets[*peer].open()) continue;
    sockets[*peer] = std::move(socket);
    --left;
  }
  return sockets;
}

}  // namespace decent
