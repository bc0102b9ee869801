// Parts of a source: `limit` and `holdout`.

#include "decent/data/subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "../support/refusal.h"
#include "numbered_source.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using testing::refusal;

std::vector<std::int64_t> all_of(const Source& source) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(source.size()));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<std::int64_t> values(indices.size());
  source.read(0, indices, reinterpret_cast<std::byte*>(values.data()));
  for (const std::int64_t index : indices) {
    EXPECT_EQ(source.read_one(0, index).as<std::int64_t>()[0],
              values[static_cast<std::size_t>(index)]);
  }
  return values;
}

std::unique_ptr<Source> part(std::int64_t samples, double fraction, bool evaluates,
                             std::uint64_t seed = 0) {
  return held_out(std::make_unique<testing::NumberedSource>(samples),
                  {.fraction = fraction, .seed = seed, .evaluates = evaluates});
}

TEST(Limit, TakesTheFirst) {
  EXPECT_THAT(all_of(*limited(std::make_unique<testing::NumberedSource>(9), 3)),
              ElementsAre(0, 1, 2));
  EXPECT_EQ(limited(std::make_unique<testing::NumberedSource>(9), 10)->size(), 9);
}

TEST(Holdout, PartsShareOutTheSamples) {
  for (const std::int64_t samples : {2, 7, 100, 1001}) {
    for (const double fraction : {0.3, 0.5, 0.7}) {
      const std::vector<std::int64_t> eval = all_of(*part(samples, fraction, true));
      const std::vector<std::int64_t> train = all_of(*part(samples, fraction, false));
      EXPECT_EQ(eval.size(), std::llround(fraction * static_cast<double>(samples)));
      EXPECT_TRUE(std::is_sorted(eval.begin(), eval.end()));
      EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
      std::set<std::int64_t> both(eval.begin(), eval.end());
      both.insert(train.begin(), train.end());
      EXPECT_EQ(both.size(), samples);
      EXPECT_EQ(eval.size() + train.size(), samples);
    }
  }
}

TEST(Holdout, IsChosenBySeed) {
  EXPECT_EQ(all_of(*part(1000, 0.1, true)), all_of(*part(1000, 0.1, true)));
  EXPECT_NE(all_of(*part(1000, 0.1, true)), all_of(*part(1000, 0.1, true, 1)));
}

TEST(Holdout, RefusesAnEmptyPart) {
  EXPECT_EQ(refusal([] { part(4, 0.1, false); }),
            "holdout: its fraction of 4 samples leaves nothing for evaluation");
  EXPECT_EQ(refusal([] { part(4, 0.9, true); }),
            "holdout: its fraction of 4 samples leaves nothing for training");
}

}  // namespace
}  // namespace decent
