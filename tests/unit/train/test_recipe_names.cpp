// Recipes take what the rooms make, and what a process has registered.

#include "decent/train/recipe_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/refusal.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/data/digits.h"
#include "decent/data/formats.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/task/sources.h"
#include "decent/topology/topology.h"

namespace decent {
namespace {

template <typename... Override>
Recipe recipe_with(const Override&... override_texts) {
  const std::vector<std::string> overrides = {override_texts...};
  return parse_recipe(
      "model: {path: m.pt}\ndata: {train: {format: builtin, name: digits, split: train}}\n",
      "/recipes/run.yaml", overrides, recipe_names());
}

TEST(RecipeNames, ARegisteredTopologyCanBeNamed) {
  register_topology("alone", [](int workers, int) {
    Phase phase;
    for (int rank = 0; rank < workers; ++rank) phase.push_back({.ranks = {rank}});
    return std::vector<Phase>{phase};
  });
  EXPECT_EQ(recipe_with("parallel.topology=alone").parallel.topology.name, "alone");
}

TEST(RecipeNames, ARegisteredExchangeCanBeNamed) {
  register_exchange({.name = "fp32 again", .make = exchange_method("fp32").make});
  EXPECT_EQ(recipe_with("parallel.comm_dtype=fp32 again").parallel.comm_dtype, "fp32 again");
}

// Its author knows what it sends; the recipe is checked by it.
TEST(RecipeNames, ARegisteredExchangeSaysThatItNeedsNearCopies) {
  register_exchange(
      {.name = "last bits", .make = exchange_method("fp32").make, .needs_near_copies = true});
  EXPECT_EQ(recipe_with("parallel.comm_dtype=last bits").optimizer.name, "adamw");
  EXPECT_THAT(
      testing::refusal([] { recipe_with("parallel.comm_dtype=last bits", "optimizer.name=sgd"); }),
      ::testing::HasSubstr("last bits"));
}

TEST(RecipeNames, ARegisteredDataFormatCanBeNamedWithTheKeysThatItTakes) {
  register_data_format(
      {.name = "digits again",
       .keys = {{.name = "odd", .type = OptionType::boolean, .fallback = false}},
       .open = [](const Options& options) { return open_digits(!options.get<bool>("odd")); }});
  const std::string given = "data.train={format: digits again, odd: true}";
  EXPECT_TRUE(recipe_with(given).data.train.options.get<bool>("odd"));
  EXPECT_FALSE(
      recipe_with("data.train={format: digits again}").data.train.options.get<bool>("odd"));
  EXPECT_THROW(recipe_with("data.train={format: digits again, odd: true, name: digits}"),
               UserError);
  const Recipe recipe = recipe_with(given);
  EXPECT_EQ(open_data_set("data.train", recipe, DataUse::training).size(), 355);
}

// --dry-run prints what they cost.
TEST(RecipeNames, ExchangesOfTheContractTellTheirCosts) {
  for (const char* name : {"fp32", "bf16", "modulo2", "modulo4"})
    EXPECT_TRUE(exchange_method(name).costs) << name;
}

}  // namespace
}  // namespace decent
