#pragma once
// The gloo backend: CPU tensors over TCP, through c10d::ProcessGroupGloo.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"

namespace c10d {
class Store;
}

namespace decent {

struct GlooOptions {
  /// Network interfaces to use, as in GLOO_SOCKET_IFNAME; empty: see address.
  std::vector<std::string> interfaces;
  /// This machine's address that the others can reach. gloo's own choice, what the machine's name
  /// resolves to, is often a loopback address.
  std::string address = "127.0.0.1";
  /// How long an operation waits for its peers.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
};

/// Connects `size` workers through `store`, which the groups keep alive. Collective. Throws
/// PeerLost if they cannot be reached, UserError for an interface that does not exist.
std::shared_ptr<Communicator> connect_gloo(c10d::Store& store, int rank, int size,
                                           const GlooOptions& options);

}  // namespace decent
