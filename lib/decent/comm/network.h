#pragma once
// What the network between machines can do for GPUs.

#include <filesystem>

#include "decent/comm/launch.h"
#include "decent/core/environment.h"

namespace decent {

/// Whether NCCL sends between machines without the GPUs' help: over an active port of an RDMA
/// device (InfiniBand, RoCE, EFA) that NCCL_IB_DISABLE does not rule out, or by a network that
/// NCCL_NET names, other than its sockets. Over sockets it keeps a part of the GPU busy for as long
/// as an exchange takes. `devices`: where the system lists RDMA devices.
bool has_network_for_gpus(const Variables& variables,
                          const std::filesystem::path& devices = "/sys/class/infiniband");

/// Makes NCCL connect over the same interfaces as gloo, unless NCCL_SOCKET_IFNAME is set: those of
/// GLOO_SOCKET_IFNAME, else the one that has `address`. NCCL by itself takes the first interface
/// that is up, even if other machines cannot reach it. Call it while there are no other threads.
void choose_interface_for_nccl(const Launch& launch, const std::string& address);

}  // namespace decent
