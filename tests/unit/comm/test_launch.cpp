#include "decent/comm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

Launch read(const Environment& environment) {
  return read_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto entry = environment.find(name);
    return entry == environment.end() ? std::nullopt : std::optional(entry->second);
  });
}

Environment complete() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node-0"},
          {"MASTER_PORT", "29500"}};
}

Environment with(const std::string& name, const std::string& value) {
  Environment environment = complete();
  environment[name] = value;
  return environment;
}

std::string refusal(const Environment& environment) {
  try {
    read(environment);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ReadLaunch, WithoutVariablesIsOneWorker) {
  const Launch launch = read({});
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.world_size, 1);
  EXPECT_EQ(launch.local_rank, 0);
  EXPECT_EQ(launch.local_world_size, 1);
  EXPECT_TRUE(launch.interfaces.empty());
  EXPECT_TRUE(launch.one_machine());
}

// What other programs leave behind does not make a launcher.
TEST(ReadLaunch, IgnoresStrayVariables) {
  EXPECT_EQ(read({{"MASTER_ADDR", "node-0"}, {"LOCAL_RANK", "x"}}).world_size, 1);
}

TEST(ReadLaunch, TakesEverythingFromALauncher) {
  const Launch launch = read(complete());
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world_size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_world_size, 4);
  EXPECT_EQ(launch.master_addr, "node-0");
  EXPECT_EQ(launch.master_port, 29500);
  EXPECT_FALSE(launch.agent_store);
  EXPECT_EQ(launch.store_prefix, "");
  EXPECT_FALSE(launch.one_machine());
  EXPECT_FALSE(launch.hosts_store());
  EXPECT_TRUE(read(with("RANK", "0")).hosts_store());
  EXPECT_TRUE(read(with("LOCAL_WORLD_SIZE", "8")).one_machine());
}

TEST(ReadLaunch, OneWorkerOfALauncherNeedsNoStore) {
  EXPECT_EQ(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).world_size, 1);
}

TEST(ReadLaunch, UsesTheStoreOfTorchrun) {
  Environment environment = with("TORCHELASTIC_USE_AGENT_STORE", "True");
  environment["RANK"] = "0";
  environment["TORCHELASTIC_RESTART_COUNT"] = "3";  // every agent's own
  EXPECT_TRUE(read(environment).agent_store);
  EXPECT_FALSE(read(environment).hosts_store());
  EXPECT_EQ(read(environment).store_prefix, "");
  EXPECT_NE(read(environment).script, "");
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(read(environment).script, "");
  EXPECT_TRUE(read(environment).hosts_store());
}

// Its agents may start all workers again, on machines that need not be the same.
TEST(ReadLaunch, KnowsAnElasticRunOfTorchrun) {
  Environment elastic = with("TORCHELASTIC_USE_AGENT_STORE", "True");
  elastic["TORCHELASTIC_RUN_ID"] = "digits";
  elastic["TORCHELASTIC_MAX_RESTARTS"] = "3";
  elastic["GROUP_WORLD_SIZE"] = "2";
  EXPECT_EQ(read(elastic).elastic_run, "digits");
  for (const auto& [name, value] : {std::pair("TORCHELASTIC_MAX_RESTARTS", "0"),
                                    {"GROUP_WORLD_SIZE", "1"},
                                    {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                    {"TORCH_ELASTIC_WORKER_IDENTICAL", "1"}}) {
    Environment other = elastic;
    other[name] = value;
    EXPECT_EQ(read(other).elastic_run, "") << name;
  }
}

TEST(ReadLaunch, SplitsInterfacesAtCommas) {
  using ::testing::ElementsAre;
  EXPECT_THAT(read(with("GLOO_SOCKET_IFNAME", "eth0")).interfaces, ElementsAre("eth0"));
  EXPECT_THAT(read(with("GLOO_SOCKET_IFNAME", "eth0,ib1,lo")).interfaces,
              ElementsAre("eth0", "ib1", "lo"));
  EXPECT_THAT(read(with("GLOO_SOCKET_IFNAME", ",eth0,,lo,")).interfaces, ElementsAre("eth0", "lo"));
  EXPECT_THAT(read(with("GLOO_SOCKET_IFNAME", "")).interfaces, ElementsAre());
}

TEST(ReadLaunch, NamesAMissingVariable) {
  for (const auto& entry : complete()) {
    Environment environment = complete();
    environment.erase(entry.first);
    EXPECT_THAT(refusal(environment),
                AllOf(HasSubstr(entry.first + " is missing"), HasSubstr("torchrun")))
        << entry.first;
  }
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("WORLD_SIZE is missing"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "1"}}), HasSubstr("RANK is missing"));
}

TEST(ReadLaunch, NamesAVariableThatMakesNoSense) {
  for (const auto& [name, value] : {std::pair("RANK", "8"),
                                    {"RANK", "-1"},
                                    {"RANK", "two"},
                                    {"RANK", ""},
                                    {"WORLD_SIZE", "0"},
                                    {"WORLD_SIZE", "4x"},
                                    {"WORLD_SIZE", "99999999999999999999"},
                                    {"LOCAL_RANK", "4"},
                                    {"LOCAL_WORLD_SIZE", "9"},
                                    {"LOCAL_WORLD_SIZE", "1.5"},
                                    {"MASTER_PORT", "65536"},
                                    {"MASTER_PORT", "0"}}) {
    EXPECT_THAT(refusal(with(name, value)),
                AllOf(HasSubstr(name), HasSubstr("'" + std::string(value) + "'"),
                      HasSubstr("expected an integer from")));
  }
}

}  // namespace
}  // namespace decent
