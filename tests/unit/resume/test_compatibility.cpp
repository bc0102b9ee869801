// What a checkpoint says of its run, compared with the run that is to go on from it.

#include "decent/resume/compatibility.h"

#include <gmock/gmock.h>

#include "../support/refusal.h"
#include "decent/config/loader.h"
#include "decent/resume/topics.h"
#include "methods.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMethods;
using testing::refusal;
using ::testing::SizeIs;

const config::Names kNames = [] {
  config::Names names;
  names.losses = {
      {.name = "cross_entropy",
       .keys = {{.name = "label_smoothing", .type = OptionType::number, .fallback = 0.0}}}};
  names.topologies = {"complete", "ring", "one-peer-exp", "alternating-exp-ring"};
  names.methods = kMethods;
  names.exchanges = {
      {.name = "fp32"},
      {.name = "bf16"},
      {.name = "modulo2",
       .keys = {{.name = "modulo_range", .type = OptionType::number, .fallback = kNull}}}};
  names.formats = {{.name = "builtin", .keys = {{.name = "name"}, {.name = "split"}}}};
  return names;
}();

Facts facts(const std::vector<std::string>& overrides = {}) {
  return recipe_values(parse_recipe(
      "model: {path: m.pt}\ndata: {train: {format: builtin, name: digits, split: train}}\n",
      "/recipes/run.yaml", overrides, kNames));
}

Manifest manifest_with(Facts facts) { return {.program = "p", .facts = std::move(facts)}; }

ResumingRun run_with(Facts facts, int workers = 1) {
  return {.facts = std::move(facts), .workers = workers, .names = kNames};
}

// As a version wrote them that did not know the key.
Facts without(Facts facts, const std::string& key) {
  std::erase_if(facts, [&](const auto& fact) { return fact.first == key; });
  return facts;
}

TEST(Compatibility, TellsWhatHasChanged) {
  EXPECT_THAT(check_can_resume(manifest_with(facts()), run_with(facts())), IsEmpty());
  EXPECT_THAT(check_can_resume(manifest_with(facts()), run_with(facts({"optimizer.lr=0.5"}))),
              ElementsAre("optimizer.lr was 0.001, is 0.5"));
  EXPECT_THAT(refusal([] {
                check_can_resume(manifest_with(facts()), run_with(facts({"optimizer.name=sgd"})));
              }),
              HasSubstr("optimizer.name was adamw, is sgd"));
}

TEST(Measure, IsWhatDecidesTheMeaningOfMetrics) {
  const auto alike = [](const Facts& then, const Facts& now) {
    return !contradict(measure_of(then), measure_of(now));
  };
  EXPECT_TRUE(alike(facts(), facts({"optimizer.lr=0.5", "data.batch_size=3"})));
  EXPECT_TRUE(alike(without(facts(), "model.loss_weights"), facts()));
  for (const std::string change : {"model.target=z", "model.output=1", "model.class_dim=2",
                                   "model.ignore_index=0", "model.label_smoothing=0.1"})
    EXPECT_FALSE(alike(facts(), facts({change}))) << change;
  EXPECT_FALSE(alike({{"the transforms of the target", "none"}},
                     {{"the transforms of the target", "normalize field: y"}}));
}

TEST(Compatibility, AKeyThatTheCheckpointsVersionDidNotHaveIsNoChangeAtItsDefault) {
  for (const std::string key :
       {"optimizer.eps", "optimizer.alpha", "optimizer.momentum", "parallel.gamma"}) {
    const Manifest old = manifest_with(without(facts(), key));
    EXPECT_THAT(check_can_resume(old, run_with(facts())), IsEmpty()) << key;
    EXPECT_THAT(check_can_resume(old, run_with(facts({key + "=0.25"}))),
                ElementsAre(key + " (0.25) is not in the checkpoint"));
  }
}

TEST(Compatibility, ACheckpointOfAVersionThatDidNotSampleIsContinuedWithoutSampling) {
  const Manifest old = manifest_with(without(facts(), "data.sampling"));
  EXPECT_THAT(check_can_resume(old, run_with(facts())), IsEmpty());
  EXPECT_THAT(
      refusal([&] { check_can_resume(old, run_with(facts({"data.sampling={weights: w}"}))); }),
      HasSubstr("data.sampling ({weights: w, replacement: true}) is not in the checkpoint"));
}

// ---- exchanges that need near copies ----------------------------------------------------------

Facts with_rates(Facts facts, const std::string& rates) {
  facts.emplace_back(kRatesTopic, rates);
  return facts;
}

TEST(ExchangeChanges, AreThoseOfWhatTheExchangeSends) {
  const Manifest manifest = manifest_with(with_rates(facts(), "constant"));
  const auto changes = [&](const std::vector<std::string>& overrides, const std::string& rates) {
    return exchange_changes(manifest, run_with(with_rates(facts(overrides), rates)));
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
  EXPECT_THAT(exchange_changes(manifest, run_with(with_rates(now, "constant"))), IsEmpty());
}

TEST(ExchangeChanges, OfACheckpointWithoutTheRatesAreNotKnownToBeNone) {
  const ResumingRun now = run_with(with_rates(facts(), "constant"));
  EXPECT_THAT(exchange_changes(manifest_with(facts()), now), ElementsAre("the learning rates"));
  EXPECT_THAT(check_can_resume(manifest_with(facts()), now), IsEmpty());
}

TEST(ExchangeChanges, AreNoneWhereAllStartFromTheAverageAnyway) {
  const Manifest manifest = manifest_with(with_rates(facts(), "constant"));
  EXPECT_THAT(exchange_changes(manifest, run_with(with_rates(facts(), "falling"), 2)), IsEmpty());
}

// ---- another parallel.method -------------------------------------------------------------------

Facts facts_of_method(const std::string& method, std::vector<std::string> overrides = {}) {
  overrides.push_back("parallel.method=" + method);
  return with_rates(facts(overrides), "constant");
}

// As all_reduce saves it.
Manifest alike(Facts facts) {
  Manifest manifest = manifest_with(std::move(facts));
  manifest.files = {{.name = replica_file_name(0), .checksum = "", .shared_in = 0}};
  return manifest;
}

std::vector<std::string> told(const Facts& then, const Facts& now) {
  return check_can_resume(manifest_with(then), run_with(now));
}

TEST(AnotherMethod, IsToldOf) {
  EXPECT_THAT(told(facts_of_method("gossip"), facts_of_method("all_reduce")),
              ElementsAre("parallel.method was gossip, is all_reduce"));
  EXPECT_THAT(told(facts_of_method("all_reduce"), facts_of_method("none")),
              ElementsAre("parallel.method was all_reduce, is none"));
}

TEST(AnotherMethod, ThanThatOfProgramsThatHadOne) {
  const Facts old = without(facts_of_method("gossip"), "parallel.method");
  EXPECT_THAT(told(old, facts_of_method("none")),
              ElementsAre("parallel.method was gossip, is none"));
  EXPECT_THAT(told(old, facts_of_method("gossip")), IsEmpty());
}

TEST(AnotherMethod, NeedsNoTopologyOfBoth) {
  const auto with_topology = [](const std::string& method, const std::string& topology) {
    Facts facts = facts_of_method(method, {"parallel.topology=" + topology});
    facts.emplace_back("the topology", topology + " of 1");
    return facts;
  };
  const Facts ring = with_topology("gossip", "ring");
  EXPECT_THAT(refusal([&] { told(ring, with_topology("gossip", "complete")); }),
              HasSubstr("parallel.topology was ring, is complete"));
  for (const std::string method : {"all_reduce", "none"}) {
    EXPECT_THAT(told(ring, with_topology(method, "complete")), SizeIs(1)) << method;
    EXPECT_THAT(told(with_topology(method, "complete"), ring), SizeIs(1)) << method;
    EXPECT_THAT(told(with_topology(method, "complete"), with_topology(method, "ring")), IsEmpty());
  }
}

// ---- a topology that does not fit the number of workers ---------------------------------------

// What a run of `workers` says that has `own` in its recipe and trains by `other`, if it must.
Facts facts_of_topology(const std::string& own, int workers, const std::string& other = "") {
  Facts facts = facts_of_method("gossip", {"parallel.topology=" + own});
  const std::string name = other.empty() ? own : other;
  facts.emplace_back(kTopologyTopic, "the groups of " + name + " of " + std::to_string(workers));
  if (!other.empty()) facts.emplace_back(kTopologyInEffect, other);
  return facts;
}

std::string refusal_of(const Facts& then, int before, const Facts& now, int workers) {
  Manifest manifest = manifest_with(then);
  manifest.world_size = before;
  return refusal(
      [&] { EXPECT_THAT(check_can_resume(manifest, run_with(now, workers)), IsEmpty()); });
}

TEST(TopologyInEffect, MayReplaceTheRecipesOneAndGiveWayAgain) {
  const Facts four = facts_of_topology("alternating-exp-ring", 4);
  const Facts three = facts_of_topology("alternating-exp-ring", 3, "one-peer-exp");
  EXPECT_EQ(refusal_of(four, 4, three, 3), "accepted");
  EXPECT_EQ(refusal_of(three, 3, three, 3), "accepted");
  EXPECT_EQ(refusal_of(three, 3, four, 4), "accepted");
  EXPECT_EQ(refusal_of(three, 3, facts_of_topology("alternating-exp-ring", 5, "ring"), 5),
            "accepted");
}

// The recipe may name it from then on.
TEST(TopologyInEffect, IsTheSameAsOneInARecipe) {
  const Facts three = facts_of_topology("alternating-exp-ring", 3, "one-peer-exp");
  EXPECT_EQ(refusal_of(three, 3, facts_of_topology("one-peer-exp", 3), 3), "accepted");
  EXPECT_EQ(refusal_of(three, 3, facts_of_topology("one-peer-exp", 4), 4), "accepted");
  EXPECT_EQ(refusal_of(facts_of_topology("one-peer-exp", 4), 4, three, 3), "accepted");
}

TEST(TopologyInEffect, OfTheSameWorkersMustNotChange) {
  const Facts three = facts_of_topology("alternating-exp-ring", 3, "one-peer-exp");
  EXPECT_THAT(refusal_of(three, 3, facts_of_topology("alternating-exp-ring", 3, "ring"), 3),
              HasSubstr("the topology in effect was one-peer-exp, is ring, because "
                        "parallel.topology does not fit these workers"));
  EXPECT_THAT(refusal_of(three, 3, facts_of_topology("ring", 3), 3),
              HasSubstr("the topology in effect was one-peer-exp, is ring"));
  // On other machines, as many workers as before.
  const Facts four = facts_of_topology("alternating-exp-ring", 4);
  const Facts together = facts_of_topology("alternating-exp-ring", 4, "one-peer-exp");
  EXPECT_THAT(
      refusal_of(four, 4, together, 4),
      HasSubstr("the topology in effect was alternating-exp-ring, is one-peer-exp, because"));
}

TEST(TopologyInEffect, DoesNotHideAnotherTopologyInTheRecipe) {
  const Facts three = facts_of_topology("alternating-exp-ring", 3, "one-peer-exp");
  EXPECT_THAT(refusal_of(three, 3, facts_of_topology("ring", 4), 4),
              HasSubstr("the topology in effect was one-peer-exp, is ring"));
  EXPECT_THAT(refusal_of(facts_of_topology("ring", 4), 4, three, 3),
              HasSubstr("the topology in effect was ring, is one-peer-exp, because"));
}

TEST(AnotherMethod, KeysThatNeitherUsesAreNotToldOf) {
  const std::vector<std::string> mixing = {
      "parallel={gamma: 0.5, slices: 2, modulo_range: 9, comm_dtype_within: bf16}"};
  EXPECT_THAT(told(facts_of_method("none"), facts_of_method("none", mixing)), IsEmpty());
  EXPECT_THAT(told(facts_of_method("gossip"), facts_of_method("gossip", mixing)), SizeIs(4));
  EXPECT_THAT(told(facts_of_method("gossip", mixing), facts_of_method("none")), SizeIs(5));
  const std::vector<std::string> bf16 = {"parallel.comm_dtype=bf16"};
  EXPECT_THAT(told(facts_of_method("none"), facts_of_method("none", bf16)), IsEmpty());
  EXPECT_THAT(told(facts_of_method("all_reduce"), facts_of_method("all_reduce", bf16)),
              ElementsAre("parallel.comm_dtype was fp32, is bf16"));
}

TEST(WorkersOnOtherMachines, AreToldOf) {
  const auto on_machines = [](const std::string& within, const std::string& machines) {
    Facts facts = facts_of_method("gossip", {"parallel.comm_dtype_within=" + within});
    if (!machines.empty()) facts.emplace_back(kPlacementTopic, machines);
    return facts;
  };
  EXPECT_THAT(told(on_machines("fp32", "0 0"), on_machines("fp32", "0 1")),
              ElementsAre("the placement of workers on machines was 0 0, is 0 1"));
  const Facts without_key = on_machines("null", "");
  EXPECT_THAT(told(without_key, on_machines("fp32", "0 0")),
              ElementsAre("parallel.comm_dtype_within was null, is fp32"));
  EXPECT_THAT(told(on_machines("fp32", "0 0"), without_key),
              ElementsAre("parallel.comm_dtype_within was fp32, is null"));
}

// Copies are near by the same measure wherever they are, which the key may have changed.
TEST(WorkersOnOtherMachines, BeginWithAnAverageOnlyIfTheKeyHasChanged) {
  const auto on_machines = [](const std::string& within, const std::string& machines) {
    Facts facts = facts_of_method("gossip", {"parallel.comm_dtype_within=" + within});
    facts.emplace_back(kPlacementTopic, machines);
    return facts;
  };
  const Manifest then = manifest_with(on_machines("fp32", "0 0"));
  EXPECT_THAT(exchange_changes(then, run_with(on_machines("fp32", "0 1"))), IsEmpty());
  EXPECT_THAT(exchange_changes(then, run_with(on_machines("bf16", "0 0"))),
              ElementsAre("parallel.comm_dtype_within"));
  // Of a program without the key, which is not given.
  const Manifest old =
      manifest_with(without(facts_of_method("gossip"), "parallel.comm_dtype_within"));
  EXPECT_THAT(exchange_changes(old, run_with(facts_of_method("gossip"))), IsEmpty());
}

TEST(ExchangeChanges, AreTheMethodWhereNothingKeptCopiesNear) {
  const auto changes = [](const Manifest& manifest) {
    return exchange_changes(manifest, run_with(facts_of_method("gossip")));
  };
  EXPECT_THAT(changes(manifest_with(facts_of_method("gossip"))), IsEmpty());
  EXPECT_THAT(changes(manifest_with(facts_of_method("none"))), ElementsAre("parallel.method"));
  EXPECT_THAT(changes(manifest_with(facts_of_method("none", {"parallel.gamma=0.5"}))),
              ElementsAre("parallel.method"));
}

// Copies that are alike are near on any grid.
TEST(ExchangeChanges, AreNoneWhereCopiesAreAlike) {
  const Facts now = facts_of_method("gossip", {"parallel.gamma=0.5"});
  EXPECT_THAT(exchange_changes(alike(facts_of_method("all_reduce")), run_with(now)), IsEmpty());
}

// accum_iter means something to two optimizers.
TEST(Compatibility, RefusesAnotherAccumIterWhereItIsUsed) {
  const auto resume = [](const std::string& name) {
    const std::string optimizer = "optimizer.name=" + name;
    return refusal([&] {
      check_can_resume(manifest_with(facts({optimizer})),
                       run_with(facts({optimizer, "optimizer.accum_iter=3"})));
    });
  };
  EXPECT_THAT(resume("accum_adam"), HasSubstr("optimizer.accum_iter was 4, is 3"));
  EXPECT_EQ(resume("adam"), "accepted");
}

}  // namespace
}  // namespace decent
