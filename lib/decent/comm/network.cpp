#include "decent/comm/network.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include "decent/comm/address.h"
#include "decent/core/text.h"

namespace decent {
namespace {

namespace fs = std::filesystem;

// "4: ACTIVE".
bool is_active(const fs::path& port) {
  std::ifstream file(port / "state");
  std::string text;
  std::getline(file, text);
  return text.find("ACTIVE") != std::string::npos;
}

bool has_active_port(const fs::path& devices) {
  std::error_code failed;
  for (const auto& device : fs::directory_iterator(devices, failed)) {
    std::error_code none;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      if (is_active(port.path())) return true;
    }
  }
  return false;
}

}  // namespace

bool has_network_for_gpus(const Variables& variables, const fs::path& devices) {
  const std::string named = variables("NCCL_NET").value_or("");
  if (!named.empty() && named != "IB") return named != "Socket";
  return variables("NCCL_IB_DISABLE").value_or("0") != "1" && has_active_port(devices);
}

void choose_interface_for_nccl(const Launch& launch, const std::string& address) {
  std::vector<std::string> names = launch.interfaces;
  for (const InterfaceAddress& entry : interface_addresses()) {
    if (names.empty() && entry.address == address) names.push_back(entry.interface);
  }
  if (names.empty()) return;
  ::setenv("NCCL_SOCKET_IFNAME", ("=" + join(names, ",")).c_str(), /*overwrite=*/0);  // =: exactly
}

}  // namespace decent
