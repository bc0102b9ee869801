#pragma once
// The gloo backend: TCP between CPU tensors, through c10d::ProcessGroupGloo.

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
  /// Network interfaces to use, as in GLOO_SOCKET_IFNAME; empty: see loopback.
  std::vector<std::string> interfaces;
  /// All workers run on this machine: talk over 127.0.0.1, whatever the machine's name resolves to.
  bool loopback = false;
  /// How long an operation waits for its peers.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
};

/// Connects `size` workers through `store`, which the groups keep alive. Collective.
/// Throws PeerLost where they cannot be reached, UserError for an interface that does not exist.
std::shared_ptr<Communicator> connect_gloo(c10d::Store& store, int rank, int size,
                                           const GlooOptions& options);

}  // namespace decent
