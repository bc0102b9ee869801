#pragma once
// The address under which other machines reach this one.

#include <string>
#include <vector>

#include "decent/comm/launch.h"

namespace decent {

/// One usable address of a network interface.
struct InterfaceAddress {
  std::string interface;
  std::string address;  // numeric, never link-local IPv6
  bool loopback = false;
};

/// The addresses of the interfaces that are up, IPv4 ones first.
std::vector<InterfaceAddress> interface_addresses();

/// Throws UserError that lists the interfaces of this machine.
[[noreturn]] void refuse_interface(const std::string& name);

/// This machine's address on the route to the store, where the other workers are: the address of
/// the first interface in GLOO_SOCKET_IFNAME; else 127.0.0.1 if all workers are on this machine;
/// else the own address of the route to MASTER_ADDR, a loopback address if MASTER_ADDR is this
/// machine. Throws UserError if the interface does not exist.
std::string route_address(const Launch& launch);

/// The address of the store: MASTER_ADDR. If no launcher hosts the store and all workers are on
/// this machine, a loopback address (MASTER_ADDR's if it has one), so that nobody else reaches it.
std::string store_address(const Launch& launch);

bool is_loopback(const std::string& address);

/// For a worker whose route to the store is a loopback address while others come from elsewhere:
/// the address that this machine's name resolves to. Throws UserError that lists the interfaces if
/// this is a loopback address too, as on Debian by default.
std::string address_for_others(const Launch& launch);

}  // namespace decent
