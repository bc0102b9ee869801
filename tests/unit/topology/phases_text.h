#pragma once
// Phases as short texts, e.g. "0-1 2 | 0-2 1": edges by their smallest rank, phases in order.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "decent/topology/topology.h"

namespace decent::testing {

inline std::string phases_text(std::vector<Phase> phases) {
  std::string text;
  for (Phase& phase : phases) {
    if (!text.empty()) text += " |";
    std::sort(phase.begin(), phase.end(),
              [](const Edge& a, const Edge& b) { return a.ranks.front() < b.ranks.front(); });
    for (const Edge& edge : phase) {
      text += text.empty() ? "" : " ";
      EXPECT_TRUE(std::is_sorted(edge.ranks.begin(), edge.ranks.end()));
      for (std::size_t i = 0; i < edge.ranks.size(); ++i) {
        text += (i == 0 ? "" : "-") + std::to_string(edge.ranks[i]);
      }
    }
  }
  return text;
}

/// Every edge keeps the same share as it takes of each other member: 1 / members.
inline void expect_uniform_weights(const std::vector<Phase>& phases) {
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase) {
      EXPECT_EQ(edge.self_weight, 1.0 / static_cast<double>(edge.ranks.size()));
    }
  }
}

}  // namespace decent::testing
