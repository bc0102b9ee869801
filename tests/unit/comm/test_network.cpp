#include "decent/comm/network.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace decent {
namespace {

namespace fs = std::filesystem;

class Network : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "network-XXXXXX";
    devices_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(devices_); }

  void add_port(const std::string& device, const std::string& state) {
    const fs::path port = devices_ / device / "ports" / "1";
    fs::create_directories(port);
    std::ofstream(port / "state") << state << "\n";
  }

  bool is_for_gpus(const std::map<std::string, std::string>& environment = {}) {
    return has_network_for_gpus(
        [&](const std::string& name) -> std::optional<std::string> {
          const auto found = environment.find(name);
          return found == environment.end() ? std::nullopt : std::optional(found->second);
        },
        devices_);
  }

  fs::path devices_;
};

TEST_F(Network, IsForGpusWithAnActivePort) {
  EXPECT_FALSE(is_for_gpus());
  add_port("mlx5_0", "1: DOWN");
  EXPECT_FALSE(is_for_gpus());
  add_port("mlx5_1", "4: ACTIVE");
  EXPECT_TRUE(is_for_gpus());
  EXPECT_FALSE(is_for_gpus({{"NCCL_IB_DISABLE", "1"}}));
  EXPECT_TRUE(is_for_gpus({{"NCCL_IB_DISABLE", "0"}}));
}

TEST_F(Network, IsWhatNcclIsToldToTake) {
  EXPECT_TRUE(is_for_gpus({{"NCCL_NET", "AWS Libfabric"}}));
  EXPECT_FALSE(is_for_gpus({{"NCCL_NET", "IB"}}));  // of which there is none
  add_port("mlx5_0", "4: ACTIVE");
  EXPECT_TRUE(is_for_gpus({{"NCCL_NET", "IB"}}));
  EXPECT_FALSE(is_for_gpus({{"NCCL_NET", "Socket"}}));
}

TEST_F(Network, HasNoDevices) {
  devices_ = devices_ / "that is not there";
  EXPECT_FALSE(is_for_gpus());
}

// NCCL_SOCKET_IFNAME afterwards.
std::string chosen(const Launch& launch, const std::string& address, const char* before = nullptr) {
  ::unsetenv("NCCL_SOCKET_IFNAME");
  if (before != nullptr) ::setenv("NCCL_SOCKET_IFNAME", before, 1);
  choose_interface_for_nccl(launch, address);
  const char* after = std::getenv("NCCL_SOCKET_IFNAME");
  std::string text = after == nullptr ? "" : after;
  ::unsetenv("NCCL_SOCKET_IFNAME");
  return text;
}

TEST(InterfaceForNccl, IsThatOfGloo) {
  EXPECT_EQ(chosen({}, "127.0.0.1"), "=lo");
  Launch launch;
  launch.interfaces = {"eth1", "eth2"};
  EXPECT_EQ(chosen(launch, "127.0.0.1"), "=eth1,eth2");
  EXPECT_EQ(chosen(launch, "127.0.0.1", "ib0"), "ib0");
  EXPECT_EQ(chosen({}, "192.0.2.1"), "");  // no interface has it
}

}  // namespace
}  // namespace decent
