// What a checkpoint says of its run, compared with the run that is to go on from it.

#include "decent/resume/compatibility.h"

#include <gmock/gmock.h>

#include "../support/refusal.h"
#include "decent/config/loader.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::refusal;

Facts facts(const std::vector<std::string>& overrides = {}) {
  config::Names names;
  names.formats = {{.name = "builtin", .keys = {"name", "split"}}};
  return recipe_values(parse_recipe(
      "model: {path: m.pt}\ndata: {train: {format: builtin, name: digits, split: train}}\n",
      "/recipes/run.yaml", overrides, names));
}

Manifest manifest_with(Facts facts) { return {.program = "p", .facts = std::move(facts)}; }

// As a version wrote them that did not know the key.
Facts without(Facts facts, const std::string& key) {
  std::erase_if(facts, [&](const auto& fact) { return fact.first == key; });
  return facts;
}

TEST(Compatibility, TellsWhatHasChanged) {
  EXPECT_THAT(check_can_resume(manifest_with(facts()), facts(), 1), IsEmpty());
  EXPECT_THAT(check_can_resume(manifest_with(facts()), facts({"optimizer.lr=0.5"}), 1),
              ElementsAre("optimizer.lr was 0.001, is 0.5"));
  EXPECT_THAT(
      refusal([] { check_can_resume(manifest_with(facts()), facts({"optimizer.name=sgd"}), 1); }),
      HasSubstr("optimizer.name was adamw, is sgd"));
}

TEST(Compatibility, AKeyThatTheCheckpointsVersionDidNotHaveIsNoChangeAtItsDefault) {
  for (const std::string key :
       {"optimizer.eps", "optimizer.alpha", "optimizer.momentum", "parallel.gamma"}) {
    const Manifest old = manifest_with(without(facts(), key));
    EXPECT_THAT(check_can_resume(old, facts(), 1), IsEmpty()) << key;
    EXPECT_THAT(check_can_resume(old, facts({key + "=0.25"}), 1),
                ElementsAre(key + " (0.25) is not in the checkpoint"));
  }
}

// ---- exchanges that need near copies ----------------------------------------------------------

Facts with_rates(Facts facts, const std::string& rates) {
  facts.emplace_back(kRatesTopic, rates);
  return facts;
}

TEST(ExchangeChanges, AreThoseOfWhatTheExchangeSends) {
  const Manifest manifest = manifest_with(with_rates(facts(), "constant"));
  const auto changes = [&](const std::vector<std::string>& overrides, const std::string& rates) {
    return exchange_changes(manifest, with_rates(facts(overrides), rates), 1);
  };
  EXPECT_THAT(changes({}, "constant"), IsEmpty());
  EXPECT_THAT(changes({}, "falling"), ElementsAre("the learning rates"));
  EXPECT_THAT(changes({"parallel={gamma: 0.5, slices: 2, modulo_range: 9}"}, "constant"),
              ElementsAre("parallel.gamma", "parallel.slices", "parallel.modulo_range"));
  EXPECT_THAT(changes({"optimizer.param_groups=[{match: '*', lr_scale: 2}]"}, "constant"),
              ElementsAre("optimizer.param_groups"));
}

// The learning rates are compared as they came out, not as the recipe gives them; links do not
// change what is sent.
TEST(ExchangeChanges, AreNotThoseOfOtherKeys) {
  const Manifest manifest = manifest_with(with_rates(facts(), "constant"));
  const Facts now = facts({"train.steps=7", "optimizer.lr=0.5", "optimizer.weight_decay=0.5",
                           "parallel.link_mbit=9", "data.prefetch=0"});
  EXPECT_THAT(exchange_changes(manifest, with_rates(now, "constant"), 1), IsEmpty());
}

TEST(ExchangeChanges, OfACheckpointWithoutTheRatesAreNotKnownToBeNone) {
  const Facts now = with_rates(facts(), "constant");
  EXPECT_THAT(exchange_changes(manifest_with(facts()), now, 1), ElementsAre("the learning rates"));
  EXPECT_THAT(check_can_resume(manifest_with(facts()), now, 1), IsEmpty());
}

TEST(ExchangeChanges, AreNoneWhereAllStartFromTheAverageAnyway) {
  const Manifest manifest = manifest_with(with_rates(facts(), "constant"));
  EXPECT_THAT(exchange_changes(manifest, with_rates(facts(), "falling"), 2), IsEmpty());
}

// accum_iter means something to two optimizers.
TEST(Compatibility, RefusesAnotherAccumIterWhereItIsUsed) {
  const auto resume = [](const std::string& name) {
    const std::string optimizer = "optimizer.name=" + name;
    return refusal([&] {
      check_can_resume(manifest_with(facts({optimizer})),
                       facts({optimizer, "optimizer.accum_iter=3"}), 1);
    });
  };
  EXPECT_THAT(resume("accum_adam"), HasSubstr("optimizer.accum_iter was 4, is 3"));
  EXPECT_EQ(resume("adam"), "accepted");
}

}  // namespace
}  // namespace decent
