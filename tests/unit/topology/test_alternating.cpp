// alternating-exp-ring against decent-dp 0.2.3, whose AlternatingExpRingTopology gave these groups
// of nodes. They were printed by Python for 1, 2 and 3 workers per node (the same groups of nodes
// each time):
//
//   topology = object.__new__(decent_dp.topo.AlternatingExpRingTopology)
//   topology._world_size, topology._local_world_size, topology._n_nodes = n * L, L, n
//   for edges in topology._get_topo_edges(): print(sorted(sorted({r // L for r in e.ranks}) for e
//   in edges))

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "decent/core/error.h"
#include "phases_text.h"

namespace decent {
namespace {

using Nodes = std::vector<std::vector<std::vector<int>>>;  // [phase][group][node]

Nodes expected_nodes(int nodes) {
  switch (nodes) {
    case 2:
      return {{{0}, {1}}, {{0, 1}}};
    case 4:
      return {{{0}, {1}, {2, 3}}, {{0, 1}, {2}, {3}}, {{0}, {1, 3}, {2}}, {{0, 2}, {1}, {3}}};
    default:
      return {{{0}, {1}, {2, 3}, {4}, {5}, {6, 7}}, {{0, 1}, {2}, {3}, {4, 5}, {6}, {7}},
              {{0}, {1, 3}, {2}, {4}, {5, 7}, {6}}, {{0, 2}, {1}, {3}, {4, 6}, {5}, {7}},
              {{0}, {1, 5}, {2}, {3, 7}, {4}, {6}}, {{0, 4}, {1}, {2, 6}, {3}, {5}, {7}}};
  }
}

std::vector<Phase> workers_of(const Nodes& nodes, int local_world_size) {
  std::vector<Phase> phases;
  for (const auto& groups : nodes) {
    Phase phase;
    for (const std::vector<int>& group : groups) {
      Edge edge;
      for (const int node : group) {
        for (int i = 0; i < local_world_size; ++i) {
          edge.ranks.push_back(node * local_world_size + i);
        }
      }
      phase.push_back(std::move(edge));
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

TEST(AlternatingExpRing, EqualsDecentDp) {
  for (const int nodes : {2, 4, 8}) {
    for (const int local : {1, 2, 3}) {
      const std::vector<Phase> phases = make_topology("alternating-exp-ring", nodes * local, local);
      EXPECT_EQ(testing::phases_text(phases),
                testing::phases_text(workers_of(expected_nodes(nodes), local)))
          << nodes << " nodes of " << local;
      testing::expect_uniform_weights(phases);
    }
  }
}

TEST(AlternatingExpRing, NamesTheNumbersItCanDo) {
  for (const auto& [workers, local] : {std::pair(1, 1), {2, 2}, {3, 1}, {7, 2}, {12, 2}, {4, 8}}) {
    try {
      make_topology("alternating-exp-ring", workers, local);
      ADD_FAILURE() << workers << " workers, " << local << " per node: no error";
    } catch (const UserError& error) {
      const std::string with = std::to_string(local) + " per node ";
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr("cannot do " + std::to_string(workers) +
                                       (workers == 1 ? " worker with" : " workers with")));
      EXPECT_THAT(error.what(), ::testing::HasSubstr(with + std::to_string(2 * local) + ", " +
                                                     std::to_string(4 * local) + ", "));
    }
  }
}

// The library's option by default; a program gives its own name for it.
TEST(AlternatingExpRing, NamesTheSettingToChange) {
  const auto refusal = [](const auto&... setting) -> std::string {
    try {
      make_topology("alternating-exp-ring", 3, 1, setting...);
      return "no error";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal(), ::testing::HasSubstr("\nSet local_world_size to another number"));
  EXPECT_THAT(refusal("parallel.local_world_size"),
              ::testing::HasSubstr("\nSet parallel.local_world_size to another number"));
}

}  // namespace
}  // namespace decent
