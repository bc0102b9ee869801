#include "decent/comm/address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "decent/comm/socket.h"
#include "decent/core/error.h"
#include "decent/core/host.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

std::string numeric_text(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text.data() : "";
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

bool is_link_local(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

Addresses resolve(const std::string& name, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  return {failed == 0 ? list : nullptr, &::freeaddrinfo};
}

// The own address that the kernel would send from; a connected UDP socket asks for it without a
// packet on the wire.
std::optional<std::string> address_towards(const Addresses& target) {
  for (const addrinfo* entry = target.get(); entry != nullptr; entry = entry->ai_next) {
    const Socket socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    auto* address = reinterpret_cast<sockaddr*>(&own);
    if (!socket.open() || ::connect(socket.descriptor(), entry->ai_addr, entry->ai_addrlen) != 0 ||
        ::getsockname(socket.descriptor(), address, &size) != 0) {
      continue;
    }
    return numeric_text(address, size);
  }
  return std::nullopt;
}

std::string list_interfaces() {
  std::vector<std::string> texts;
  for (const InterfaceAddress& entry : interface_addresses()) {
    texts.push_back(entry.interface + " (" + entry.address + ")");
  }
  return texts.empty() ? "none that is up" : join(texts);
}

std::string address_of_interface(const std::string& name) {
  for (const InterfaceAddress& entry : interface_addresses()) {
    if (entry.interface == name) return entry.address;
  }
  refuse_interface(name);
}

}  // namespace

void refuse_interface(const std::string& name) {
  throw UserError("GLOO_SOCKET_IFNAME: cannot use the network interface '" + name +
                  "'; this machine has " + list_interfaces());
}

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> result;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || is_link_local(entry->ifa_addr)) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    result.push_back(
        {entry->ifa_name, numeric_text(entry->ifa_addr, size), is_loopback(entry->ifa_addr)});
  }
  ::freeifaddrs(list);
  std::stable_partition(result.begin(), result.end(), [](const InterfaceAddress& entry) {
    return entry.address.find(':') == std::string::npos;
  });
  return result;
}

std::string route_address(const Launch& launch) {
  if (!launch.interfaces.empty()) return address_of_interface(launch.interfaces.front());
  if (launch.one_machine()) return "127.0.0.1";
  return address_towards(resolve(launch.master_addr, launch.master_port)).value_or("127.0.0.1");
}

std::string store_address(const Launch& launch) {
  if (launch.agent_store || !launch.one_machine()) return launch.master_addr;
  const Addresses found = resolve(launch.master_addr, launch.master_port);
  for (const addrinfo* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    if (is_loopback(entry->ai_addr)) return numeric_text(entry->ai_addr, entry->ai_addrlen);
  }
  return "127.0.0.1";
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string address_for_others(const Launch& launch) {
  const std::string name = host_name();
  const auto found = address_towards(resolve(name, launch.master_port));
  if (found && !is_loopback(*found)) return *found;
  throw UserError(
      "the names '" + launch.master_addr + "' (MASTER_ADDR) and '" + name +
      "' lead to a loopback address on '" + name +
      "', which the other machines cannot reach.\nSet GLOO_SOCKET_IFNAME to the network "
      "interface that they can reach: one of " +
      list_interfaces());
}

}  // namespace decent
