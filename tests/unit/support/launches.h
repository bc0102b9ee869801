#pragma once
// Launches as a launcher would give them, for workers that are threads of this process.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "decent/comm/launch.h"

namespace decent::testing {

inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

inline Launch launch_of(int rank, int workers, int port) {
  return {.rank = rank,
          .world_size = workers,
          .local_rank = rank,
          .local_world_size = workers,
          .master_addr = "127.0.0.1",
          .master_port = port,
          .store_prefix = "attempt",
          .interfaces = {}};
}

}  // namespace decent::testing
