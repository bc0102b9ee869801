// Each definition of docs and headers, worked out by hand for small numbers of workers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "phases_text.h"

namespace decent {
namespace {

using Expected = std::vector<std::pair<int, std::string>>;

void expect_definition(std::string_view name, const Expected& expected) {
  for (const auto& [world_size, text] : expected) {
    const std::vector<Phase> phases = make_topology(name, world_size, 1);
    EXPECT_EQ(testing::phases_text(phases), text) << name << " of " << world_size;
    testing::expect_uniform_weights(phases);
  }
}

TEST(Topology, CompleteIsOneEdgeOfAll) {
  expect_definition("complete",
                    {{1, "0"}, {2, "0-1"}, {3, "0-1-2"}, {4, "0-1-2-3"}, {7, "0-1-2-3-4-5-6"}});
}

TEST(Topology, RingPairsRightThenLeftNeighbours) {
  expect_definition(
      "ring",
      {{1, "0"}, {2, "0-1 | 0-1"}, {4, "0-1 2-3 | 0-3 1-2"}, {6, "0-1 2-3 4-5 | 0-5 1-2 3-4"}});
}

TEST(Topology, OddRingRestsEachWorkerOnce) {
  expect_definition("ring", {{3, "0-1 2 | 0 1-2 | 0-2 1"},
                             {5, "0-1 2-3 4 | 0 1-2 3-4 | 0-4 1 2-3 | 0-1 2 3-4 | 0-4 1-2 3"}});
}

TEST(Topology, OnePeerExpPairsAlongCycles) {
  expect_definition(
      "one-peer-exp",
      {{1, "0"},
       {2, "0-1"},
       {3, "0-1 2 | 0-2 1"},
       {4, "0-1 2-3 | 0-2 1-3"},
       {5, "0-1 2-3 4 | 0-2 1-4 3 | 0-4 1 2-3"},
       {6, "0-1 2-3 4-5 | 0-2 1-3 4 5 | 0-4 1-5 2 3"},
       {7, "0-1 2-3 4-5 6 | 0-2 1-3 4-6 5 | 0-4 1-5 2-6 3"},
       {8, "0-1 2-3 4-5 6-7 | 0-2 1-3 4-6 5-7 | 0-4 1-5 2-6 3-7"},
       {9, "0-1 2-3 4-5 6-7 8 | 0-2 1-8 3-5 4-6 7 | 0-4 1-6 2-7 3-8 5 | 0-8 1 2-3 4-5 6-7"}});
}

TEST(Topology, OnlyAlternatingExpRingLooksAtTheNodes) {
  for (const std::string& name : topology_names()) {
    const bool same = make_topology(name, 8, 1) == make_topology(name, 8, 2);
    EXPECT_EQ(same, name != "alternating-exp-ring") << name;
  }
}

TEST(Topology, KnowsItsNames) {
  EXPECT_THAT(topology_names(),
              ::testing::ElementsAre("complete", "ring", "one-peer-exp", "alternating-exp-ring"));
}

TEST(EdgeOf, FindsTheEdgeOfARank) {
  const Phase phase = {{{0, 2}, 0.5}, {{1}, 1.0}};
  EXPECT_EQ(&edge_of(phase, 0), &phase[0]);
  EXPECT_EQ(&edge_of(phase, 1), &phase[1]);
  EXPECT_EQ(&edge_of(phase, 2), &phase[0]);
  EXPECT_THROW(edge_of(phase, 3), std::logic_error);
}

}  // namespace
}  // namespace decent
