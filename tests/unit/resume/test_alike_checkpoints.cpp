// Checkpoints of workers whose parameters and optimizer states are alike: these are saved once for
// each folder.

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "../support/teams.h"
#include "../support/temporary_folder.h"
#include "../support/worlds.h"
#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/resume/checkpoint_search.h"
#include "decent/resume/checkpointer.h"
#include "decent/resume/replica_loader.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;

constexpr std::int64_t kStep = 10;

// What a worker has after some training with all_reduce: 0.1, 1.1, .. in float64, whose average
// over three workers would not always have their bits.
NamedTensors state_of(int rank) {
  const at::Tensor weights = at::arange(0.1, 1000, 1, at::kDouble).view({2, 500});
  return {{"model.w", weights},
          {"optimizer.w.exp_avg", weights.div(3)},
          {"optimizer.w.step", at::full({}, kStep, at::kLong)},
          {"model.frozen", at::full({3}, 0.25, at::kFloat)},
          {"scaler.scale", at::full({}, 512, at::kFloat)},
          {"buffer.mean", at::full({2}, rank, at::kFloat)},
          {"buffer.batches", at::full({}, 100 + rank, at::kLong)}};
}

NamedTensors empty_state() {
  NamedTensors state;
  for (const auto& [name, tensor] : state_of(0)) state.emplace_back(name, at::zeros_like(tensor));
  return state;
}

double value_of(const NamedTensors& state, const std::string& name) {
  for (const auto& [each, tensor] : state)
    if (each == name) return tensor.flatten()[0].item<double>();
  ADD_FAILURE() << "no " << name;
  return 0;
}

// Everything that workers have alike, bit for bit.
void expect_shared_as_saved(const NamedTensors& state) {
  const NamedTensors saved = state_of(0);
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (saved[i].first.starts_with("buffer.")) continue;
    EXPECT_TRUE(state[i].second.equal(saved[i].second)) << saved[i].first;
  }
}

// What a worker finds and loads.
struct Loaded {
  std::string error;
  std::vector<std::string> warnings;
  NamedTensors state;
  double distance = -1;
  bool whole = false;
};

class AlikeCheckpoint : public ::testing::Test {
 protected:
  // The checkpoints of machine "a", "b", ..; "nowhere" has none.
  CheckpointFolder on(const std::string& machine) const {
    return CheckpointFolder(place_.path() / machine / "checkpoints");
  }
  std::filesystem::path file(const std::string& machine, int replica) const {
    return on(machine).path_of(kStep) / replica_file_name(replica);
  }

  // As workers on these machines save it, given by rank.
  void save(const std::vector<std::string>& machines) {
    std::map<std::string, int> first;
    std::vector<int> leaders;
    for (std::size_t rank = 0; rank < machines.size(); ++rank)
      leaders.push_back(first.try_emplace(machines[rank], static_cast<int>(rank)).first->second);
    testing::run_worlds(static_cast<int>(machines.size()), [&](World& world) {
      const int rank = world.launch().rank;
      Checkpointer checkpointer({.team = testing::team_of(world),
                                 .leaders = FolderLeaders(leaders),
                                 .copies_alike = true,
                                 .folder = on(machines[static_cast<std::size_t>(rank)])});
      checkpointer.save({.workers = world.membership(), .step = kStep}, state_of(rank), false);
    });
  }

  // As workers that see the folders of these machines load it; by rank.
  std::vector<Loaded> load(const std::vector<std::string>& machines, bool average = false,
                           bool allow_missing = false) {
    std::vector<Loaded> all(machines.size());
    testing::run_worlds(static_cast<int>(machines.size()), [&](World& world) {
      const auto rank = static_cast<std::size_t>(world.launch().rank);
      DeviceChoice device;
      const auto communicator = world.communicator(device);
      load(world, *communicator, machines[rank], average, allow_missing, all[rank]);
      world.agree("loaded", [] {});  // nobody closes a connection before
    });
    return all;
  }

 private:
  void load(World& world, Communicator& communicator, const std::string& machine, bool average,
            bool allow_missing, Loaded& loaded) {
    const CheckpointSearch search{
        .allow_missing = allow_missing, .must_find = true, .warn = [&](const std::string& text) {
          loaded.warnings.push_back(text);
        }};
    loaded.state = empty_state();
    try {
      auto found = find_newest_checkpoint(testing::team_of(world), on(machine).path(), search);
      loaded.whole = found->whole();
      if (average) {
        loaded.distance = average_replicas(*found, communicator, loaded.state, true);
      } else {
        load_replica(*found, communicator, loaded.state);
      }
    } catch (const SharedError& error) {
      loaded.error = error.what();
    }
  }

  TemporaryFolder place_;
};

TEST_F(AlikeCheckpoint, HoldsWhatIsSharedOnceForEachFolder) {
  save({"a", "a", "b"});
  const std::filesystem::path text = on("b").path_of(kStep) / kManifestName;
  const Manifest manifest = parse_manifest(read_text(text), text.string());
  EXPECT_EQ(manifest.with_everything(), (std::vector<int>{0, 2}));
  EXPECT_EQ(manifest.files[1].shared_in, 0);
  const ReplicaFile leader(on("a").path_of(kStep), manifest.files[0]);
  const ReplicaFile other(on("a").path_of(kStep), manifest.files[1]);
  for (const auto& [name, tensor] : state_of(0)) {
    EXPECT_NE(leader.find(name), nullptr) << name;
    EXPECT_EQ(other.find(name) != nullptr, name.starts_with("buffer.")) << name;
  }
}

// Each its own buffers, wherever the files lie.
TEST_F(AlikeCheckpoint, IsLoadedBitForBit) {
  save({"a", "a", "b"});
  const std::vector<std::vector<std::string>> places = {
      {"a", "a", "b"}, {"b", "a", "a"}, {"a", "nowhere", "b"}, {"nowhere", "b", "a"}};
  for (const auto& machines : places) {
    const std::vector<Loaded> all = load(machines);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      SCOPED_TRACE(machines[0] + " " + machines[1] + " " + machines[2] + ", rank " +
                   std::to_string(rank));
      EXPECT_EQ(all[rank].error, "");
      expect_shared_as_saved(all[rank].state);
      EXPECT_EQ(value_of(all[rank].state, "buffer.mean"), static_cast<double>(rank));
      EXPECT_EQ(value_of(all[rank].state, "buffer.batches"), 100 + static_cast<double>(rank));
    }
  }
}

// Three files with everything: their average in float64 would be rounded.
TEST_F(AlikeCheckpoint, GivesOtherNumbersOfWorkersTheBitsThatWereSaved) {
  save({"a", "b", "c"});
  const std::vector<std::vector<std::string>> places = {
      {"a", "b", "c"}, {"c", "a", "b", "nowhere"}, {"a", "b", "c", "a"}};
  for (const auto& machines : places) {
    for (const Loaded& loaded : load(machines, /*average=*/true)) {
      EXPECT_EQ(loaded.error, "");
      expect_shared_as_saved(loaded.state);
      EXPECT_EQ(value_of(loaded.state, "buffer.mean"), 1);       // of 0, 1 and 2
      EXPECT_EQ(value_of(loaded.state, "buffer.batches"), 100);  // the first replica's
      EXPECT_EQ(loaded.distance, 0);
    }
  }
}

TEST_F(AlikeCheckpoint, IsReadByFewerWorkers) {
  save({"a", "a", "a", "a"});
  const std::vector<Loaded> all = load({"a"}, /*average=*/true);
  expect_shared_as_saved(all[0].state);
  EXPECT_EQ(value_of(all[0].state, "buffer.mean"), 1.5);
  EXPECT_TRUE(all[0].whole);
}

TEST_F(AlikeCheckpoint, CanDoWithoutBuffersOfSomeWhereThatIsAllowed) {
  save({"a", "a", "b"});
  std::filesystem::remove(file("a", 1));
  EXPECT_THAT(load({"a", "a", "b"})[0].error, HasSubstr("checkpoint.allow_missing=true"));
  for (const Loaded& loaded : load({"a", "a", "b"}, /*average=*/true, /*allow_missing=*/true)) {
    EXPECT_EQ(loaded.error, "");
    expect_shared_as_saved(loaded.state);
    EXPECT_EQ(value_of(loaded.state, "buffer.mean"), 1);  // of 0 and 2
  }
}

TEST_F(AlikeCheckpoint, CanDoWithoutTheFilesOfAMachineWhereThatIsAllowed) {
  save({"a", "a", "b", "b"});
  for (const std::string lost : {"a", "b"}) {
    const std::string left = lost == "a" ? "b" : "a";
    const std::vector<std::string> machines = {left, left};
    EXPECT_THAT(load(machines)[0].error, HasSubstr("checkpoint.allow_missing=true"));
    for (const Loaded& loaded : load(machines, /*average=*/true, /*allow_missing=*/true)) {
      EXPECT_EQ(loaded.error, "");
      expect_shared_as_saved(loaded.state);
      EXPECT_EQ(value_of(loaded.state, "buffer.mean"), left == "a" ? 0.5 : 2.5);
    }
  }
}

TEST_F(AlikeCheckpoint, IsOfNoUseWithoutParameters) {
  save({"a", "a"});
  std::filesystem::remove(file("a", 0));
  for (const bool allow_missing : {false, true}) {
    const std::string error = load({"a", "a"}, /*average=*/true, allow_missing)[0].error;
    EXPECT_THAT(error, AllOf(HasSubstr("rank-0000.safetensors, which holds the parameters of all "
                                       "workers, is on no worker"),
                             Not(HasSubstr("allow_missing"))));
  }
}

TEST_F(AlikeCheckpoint, IsOfNoUseWhereParametersAreDamaged) {
  save({"a", "a"});
  write_file(file("a", 0), "cut short");
  for (const bool allow_missing : {false, true}) {
    const std::string error = load({"a", "a"}, /*average=*/true, allow_missing)[0].error;
    EXPECT_THAT(error, AllOf(HasSubstr("rank-0000.safetensors' is damaged"),
                             HasSubstr("the parameters of all workers are in "
                                       "rank-0000.safetensors alone"),
                             Not(HasSubstr("allow_missing"))));
  }
}

// The parameters are on the other machine, too.
TEST_F(AlikeCheckpoint, TakesParametersFromTheFileThatIsGood) {
  save({"a", "a", "b"});
  write_file(file("a", 0), "cut short");
  EXPECT_THAT(load({"a", "a", "b"})[0].error, HasSubstr("is damaged"));
  for (const Loaded& loaded : load({"a", "a", "b"}, /*average=*/true, /*allow_missing=*/true)) {
    EXPECT_EQ(loaded.error, "");
    EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("replica 0 of 3 cannot be read")));
    expect_shared_as_saved(loaded.state);
    EXPECT_EQ(value_of(loaded.state, "buffer.mean"), 1.5);  // of 1 and 2
  }
}

}  // namespace
}  // namespace decent
