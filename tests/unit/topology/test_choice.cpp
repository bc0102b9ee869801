#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/refusal.h"
#include "decent/topology/topology.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::refusal;

// Worker 0 meets the others in turn.
std::vector<Phase> star(int world_size, int /*local_world_size*/) {
  std::vector<Phase> phases;
  for (int guest = 1; guest < world_size; ++guest) {
    Phase& phase = phases.emplace_back();
    phase.push_back({.ranks = {guest, 0}});
    for (int other = 1; other < world_size; ++other) {
      if (other != guest) phase.push_back({.ranks = {other}});
    }
  }
  return phases;
}

const std::vector<Phase> kStarOfThree = {{{{0, 1}, 0.5}, {{2}, 1.0}}, {{{0, 2}, 0.5}, {{1}, 1.0}}};

TEST(Topology, IsCompleteUnlessItIsChosen) {
  EXPECT_EQ(Topology().phases(5, 1), make_topology("complete", 5, 1));
}

TEST(Topology, MayBeAName) {
  for (const std::string& name : topology_names()) {
    EXPECT_EQ(Topology(name).phases(4, 2), make_topology(name, 4, 2)) << name;
  }
  const Topology ring = "ring";
  EXPECT_EQ(ring.phases(5, 1), make_topology("ring", 5, 1));
}

TEST(Topology, MayBePhases) {
  const Topology phases = std::vector<Phase>{{{{2, 0}, 0.25}, {{1}}}};
  EXPECT_EQ(phases.phases(3, 1), (std::vector<Phase>{{{{0, 2}, 0.25}, {{1}, 1.0}}}));
}

TEST(Topology, MayBeAFunction) {
  const Topology function = star;
  EXPECT_EQ(function.phases(3, 1), kStarOfThree);
  const Topology by_node = [](int world_size, int local_world_size) {
    EXPECT_EQ(local_world_size, 2);
    return make_topology("complete", world_size, local_world_size);
  };
  EXPECT_EQ(by_node.phases(4, 2).size(), 1U);
}

TEST(Topology, SharesEquallyWhereNoWeightIsGiven) {
  const Topology phases = std::vector<Phase>{{{.ranks = {0, 1, 2, 3}}}};
  EXPECT_EQ(phases.phases(4, 1)[0][0].self_weight, 0.25);
}

TEST(Topology, RefusesPhasesThatAreNone) {
  const auto refused = [](std::vector<Phase> phases) {
    return refusal([&] { Topology(std::move(phases)).phases(2, 1); });
  };
  EXPECT_THAT(refused({}), HasSubstr("at least one phase"));
  EXPECT_THAT(refused({{{.ranks = {0}}}}), HasSubstr("phase 0: rank 1 is in no edge"));
  EXPECT_THAT(refused({{{{0, 1}, 0.0}}}), HasSubstr("(0, 1]"));
  EXPECT_THAT(refused({{{.ranks = {0, 1}}, {.ranks = {}}}}), HasSubstr("an edge has no ranks"));
}

TEST(RegisterTopology, MakesANameKnown) {
  register_topology("star of the test", star);
  EXPECT_EQ(make_topology("star of the test", 3, 1), kStarOfThree);
  EXPECT_EQ(Topology("star of the test").phases(3, 1), kStarOfThree);
  EXPECT_THAT(topology_names(), Contains("star of the test"));
  EXPECT_THAT(refusal([] { register_topology("star of the test", star); }),
              AllOf(HasSubstr("star of the test"), HasSubstr("already")));
  EXPECT_THAT(refusal([] { make_topology("star of the tset", 3, 1); }),
              AllOf(HasSubstr("ring"), HasSubstr("star of the test")));
}

TEST(RegisterTopology, RefusesWhatCannotBeOne) {
  EXPECT_THAT(refusal([] { register_topology("ring", star); }), HasSubstr("already"));
  EXPECT_THAT(refusal([] { register_topology("", star); }), HasSubstr("needs a name"));
  EXPECT_THAT(refusal([] { register_topology("empty", nullptr); }), HasSubstr("'empty'"));
}

TEST(RegisterTopology, ChecksWhatTheFunctionGives) {
  register_topology("lonely", [](int, int) { return std::vector<Phase>{{{.ranks = {0}}}}; });
  EXPECT_EQ(make_topology("lonely", 1, 1).size(), 1U);
  EXPECT_THAT(refusal([] { make_topology("lonely", 2, 1); }),
              AllOf(HasSubstr("'lonely'"), HasSubstr("rank 1 is in no edge")));
}

}  // namespace
}  // namespace decent
