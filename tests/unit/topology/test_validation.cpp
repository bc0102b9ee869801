#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "decent/core/error.h"
#include "decent/topology/topology.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::vector<Phase>& phases, int world_size) {
  try {
    validate_topology(phases, world_size);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ValidateTopology, AcceptsPartitions) {
  EXPECT_EQ(refusal({{{{0}, 1.0}}}, 1), "accepted");
  EXPECT_EQ(refusal({{{{0, 2}, 0.25}, {{1}, 1.0}}, {{{0, 1, 2}, 1.0}}}, 3), "accepted");
}

TEST(ValidateTopology, RefusesNoPhase) { EXPECT_THAT(refusal({}, 2), HasSubstr("phase")); }

TEST(ValidateTopology, NamesPhaseAndRankThatIsMissing) {
  EXPECT_THAT(refusal({{{{0, 1, 2}, 0.5}}, {{{0, 2}, 0.5}}}, 3),
              AllOf(HasSubstr("phase 1"), HasSubstr("rank 1"), HasSubstr("no edge")));
}

TEST(ValidateTopology, NamesPhaseAndRankInTwoEdges) {
  EXPECT_THAT(refusal({{{{0, 1}, 0.5}, {{1, 2}, 0.5}}}, 3),
              AllOf(HasSubstr("phase 0"), HasSubstr("rank 1"), HasSubstr("two edges")));
  EXPECT_THAT(refusal({{{{0, 0}, 0.5}}}, 1), AllOf(HasSubstr("rank 0"), HasSubstr("two edges")));
}

TEST(ValidateTopology, NamesRanksThatDoNotExist) {
  EXPECT_THAT(refusal({{{{0, 2}, 0.5}, {{1}, 1.0}}}, 2),
              AllOf(HasSubstr("rank 2"), HasSubstr("2 workers, 0 to 1")));
  EXPECT_THAT(refusal({{{{-1, 0}, 0.5}}}, 1), HasSubstr("rank -1"));
}

TEST(ValidateTopology, RefusesAnEmptyEdge) {
  EXPECT_THAT(refusal({{{{0}, 1.0}, {{}, 1.0}}}, 1),
              AllOf(HasSubstr("phase 0"), HasSubstr("no ranks")));
}

TEST(ValidateTopology, RefusesWeightsOutsideZeroToOne) {
  for (const double weight : {0.0, -0.5, 1.0000001, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(refusal({{{{0, 1}, weight}}}, 2),
                AllOf(HasSubstr("phase 0"), HasSubstr("weight"), HasSubstr("(0, 1]")))
        << weight;
  }
}

TEST(MakeTopology, NamesTheValidNamesForAnUnknownOne) {
  for (const char* name : {"rings", "", "Ring"}) {
    try {
      make_topology(name, 4, 1);
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      for (const std::string& valid : topology_names()) {
        EXPECT_THAT(error.what(), HasSubstr(valid));
      }
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(name) + "'"));
    }
  }
}

TEST(MakeTopology, RefusesNoWorkers) {
  EXPECT_THROW(make_topology("ring", 0, 1), UserError);
  EXPECT_THROW(make_topology("ring", 4, 0), UserError);
}

TEST(ConnectedParts, FollowsEdgesOfAllPhases) {
  using Parts = std::vector<std::vector<int>>;
  const std::vector<Phase> chain = {{{{0, 1}, 0.5}, {{2, 3}, 0.5}},
                                    {{{1, 2}, 0.5}, {{0}, 1}, {{3}, 1}}};
  EXPECT_EQ(connected_parts(chain, 4), (Parts{{0, 1, 2, 3}}));
  const std::vector<Phase> apart = {{{{0, 3}, 0.5}, {{1}, 1}, {{2, 4}, 0.5}}};
  EXPECT_EQ(connected_parts(apart, 5), (Parts{{0, 3}, {1}, {2, 4}}));
  EXPECT_EQ(connected_parts(make_topology("ring", 1, 1), 1), (Parts{{0}}));
}

}  // namespace
}  // namespace decent
