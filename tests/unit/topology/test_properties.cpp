// What every topology must be, for all numbers of workers.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "decent/core/error.h"
#include "decent/topology/topology.h"

namespace decent {
namespace {

struct Case {
  std::string name;
  int world_size;
  int local_world_size;
};

// Whether it may refuse that many workers: only this one has conditions.
bool supports(const std::string& name, int workers, int local) {
  if (name != "alternating-exp-ring") return true;
  const int nodes = workers / local;
  return workers % local == 0 && (nodes & (nodes - 1)) == 0 && nodes >= 2;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& name : topology_names()) {
    for (int n = 1; n <= 33; ++n) {
      for (const int local : {1, 2, 3})
        if (supports(name, n, local)) cases.push_back({name, n, local});
    }
  }
  cases.push_back({"alternating-exp-ring", 48, 3});
  cases.push_back({"alternating-exp-ring", 64, 2});
  cases.push_back({"alternating-exp-ring", 96, 3});
  return cases;
}

using Matrix = std::vector<std::vector<double>>;

// W of the header's definition.
Matrix matrix_of(const Phase& phase, int world_size) {
  const auto n = static_cast<std::size_t>(world_size);
  Matrix w(n, std::vector<double>(n));
  for (const Edge& edge : phase) {
    const auto others = static_cast<double>(edge.ranks.size() - 1);
    for (const int i : edge.ranks) {
      for (const int j : edge.ranks) {
        w[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
            i == j ? edge.self_weight : (1 - edge.self_weight) / others;
      }
    }
  }
  return w;
}

// The smallest rank that each rank is connected with, over all phases.
std::vector<int> components(const std::vector<Phase>& phases, int world_size) {
  std::vector<int> label(static_cast<std::size_t>(world_size));
  std::iota(label.begin(), label.end(), 0);
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase) {
      for (const int rank : edge.ranks) {
        const int from = label[static_cast<std::size_t>(rank)];
        const int to = label[static_cast<std::size_t>(edge.ranks.front())];
        for (int& l : label) l = l == from ? to : l;
      }
    }
  }
  return label;
}

class EveryTopology : public ::testing::TestWithParam<Case> {
 protected:
  const std::vector<Phase> phases_ =
      make_topology(GetParam().name, GetParam().world_size, GetParam().local_world_size);
};
INSTANTIATE_TEST_SUITE_P(Cases, EveryTopology, ::testing::ValuesIn(all_cases()),
                         [](const auto& each) {
                           std::string name = each.param.name + "_" +
                                              std::to_string(each.param.world_size) + "_" +
                                              std::to_string(each.param.local_world_size);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_P(EveryTopology, IsValid) {
  EXPECT_NO_THROW(validate_topology(phases_, GetParam().world_size));
}

// Not only what validate_topology says: counted here apart from it.
TEST_P(EveryTopology, PutsEachRankInOneEdgeOfEachPhase) {
  for (const Phase& phase : phases_) {
    std::vector<int> count(static_cast<std::size_t>(GetParam().world_size));
    for (const Edge& edge : phase) {
      for (const int rank : edge.ranks) ++count.at(static_cast<std::size_t>(rank));
    }
    EXPECT_EQ(count, std::vector<int>(count.size(), 1));
  }
}

TEST_P(EveryTopology, IsSymmetricAndDoublyStochastic) {
  for (const Phase& phase : phases_) {
    const Matrix w = matrix_of(phase, GetParam().world_size);
    for (std::size_t i = 0; i < w.size(); ++i) {
      // n additions of numbers below 1 round by less than n * 2^-53 each: 33 * 33 * 1.1e-16.
      EXPECT_NEAR(std::accumulate(w[i].begin(), w[i].end(), 0.0), 1.0, 1.3e-13);
      for (std::size_t j = 0; j < w.size(); ++j) {
        EXPECT_EQ(w[i][j], w[j][i]);
        EXPECT_GE(w[i][j], 0.0);
      }
    }
  }
}

TEST_P(EveryTopology, KeepsTheAverage) {
  const auto n = static_cast<std::size_t>(GetParam().world_size);
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(static_cast<double>(7 * i + 1));
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  for (const Phase& phase : phases_) {
    const Matrix w = matrix_of(phase, GetParam().world_size);
    std::vector<double> mixed(n);
    for (std::size_t i = 0; i < n; ++i) {
      mixed[i] = std::inner_product(w[i].begin(), w[i].end(), x.begin(), 0.0);
    }
    x = mixed;
  }
  // Sums of n values below 1, over at most 33 phases: 33 * 33 * 33 * 1.1e-16.
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0), sum, 4e-12);
}

TEST_P(EveryTopology, ConnectsAllWorkersOverItsPhases) {
  const std::vector<int> label = components(phases_, GetParam().world_size);
  EXPECT_EQ(label, std::vector<int>(label.size(), label.front()));
}

TEST(PowerOfTwo, OnePeerExpAveragesExactlyAfterOneRound) {
  for (const int n : {1, 2, 4, 8, 16, 32}) {
    std::vector<double> x(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), 0.0);
    for (const Phase& phase : make_topology("one-peer-exp", n, 1)) {
      for (const Edge& edge : phase) {
        double sum = 0;
        for (const int rank : edge.ranks) sum += x[static_cast<std::size_t>(rank)];
        for (const int rank : edge.ranks) {
          x[static_cast<std::size_t>(rank)] = sum / static_cast<double>(edge.ranks.size());
        }
      }
    }
    EXPECT_EQ(x, std::vector<double>(x.size(), (n - 1) / 2.0));  // halves are exact
  }
}

}  // namespace
}  // namespace decent
