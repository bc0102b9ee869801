#pragma once
// The address under which other machines reach this one.

#include <string>
#include <vector>

#include "decent/comm/launch.h"

namespace decent {

/// One usable address of a network interface.
struct InterfaceAddress {
  std::string interface;
  std::string address;  // numeric; IPv6 without link-local ones
  bool loopback = false;
};

/// The addresses of the interfaces that are up, IPv4 ones first.
std::vector<InterfaceAddress> interface_addresses();

/// Throws UserError listing the interfaces there are.
[[noreturn]] void refuse_interface(const std::string& name);

/// This machine's address on the way to the store, which is where the other workers are: that of
/// the first of GLOO_SOCKET_IFNAME, else 127.0.0.1 where all workers are on this machine, else that
/// of the route to MASTER_ADDR, which is a loopback address where MASTER_ADDR is this machine.
/// Throws UserError for an interface that is not there.
std::string route_address(const Launch& launch);

/// Where the store is: MASTER_ADDR; but a loopback address, its own where it is one, where no
/// launcher hosts the store and all workers are on this machine, so that nobody else reaches it.
std::string store_address(const Launch& launch);

bool is_loopback(const std::string& address);

/// For a worker whose route to the store is a loopback address while others come from elsewhere:
/// the address that this machine's name stands for. Throws UserError, listing interfaces, where
/// that is a loopback address too, as on Debian by default.
std::string address_for_others(const Launch& launch);

}  // namespace decent
