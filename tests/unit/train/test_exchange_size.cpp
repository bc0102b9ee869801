// What --dry-run and the first lines of a run say of the exchange.

#include "decent/train/exchange_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/digits.h"
#include "../support/launches.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/train/announcements.h"
#include "decent/train/dry_run.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Launch first_of(int workers) { return testing::launch_of(/*rank=*/0, workers, /*port=*/0); }

Run run_of(int workers, const std::string& topology, const std::string& method = "fp32") {
  Recipe recipe = testing::digits_recipe("digits_mlp.pt");
  recipe.parallel.topology.name = topology;
  recipe.parallel.comm_dtype = method;
  return prepare_run(recipe, first_of(workers), first_of(workers).member());
}

double weights_of(const Run& run) {
  double bytes = 0;
  for (const std::int64_t bucket : bucket_bytes(run)) bytes += static_cast<double>(bucket);
  return bytes;
}

// Pairs send their weights; of three workers in a ring one is alone in each phase.
TEST(ExchangeSize, IsAMeanOverWorkersAndPhases) {
  const decent::Run pairs = run_of(2, "ring");
  EXPECT_EQ(sent_facts(pairs, 2).bytes, weights_of(pairs));
  EXPECT_EQ(exchange_memory(pairs, 0), weights_of(pairs));
  const decent::Run three = run_of(3, "ring");
  EXPECT_DOUBLE_EQ(sent_facts(three, 3).bytes.value(), weights_of(three) * 2 / 3);
}

TEST(ExchangeSize, IsAKthWithSlices) {
  decent::Run run = run_of(2, "ring", "bf16");
  run.task.recipe.parallel.slices = 4;
  run.task.recipe.parallel.link_mbit = 200;
  const SentFacts sent = sent_facts(run, 2);
  EXPECT_EQ(sent.method, "bf16");
  EXPECT_EQ(sent.slices, 4);
  EXPECT_EQ(sent.link_mbit, 200);
  EXPECT_EQ(sent.bytes, weights_of(run) / 2 / 4);
}

// Two copies to send from where they are read in place, and what is received elsewhere.
TEST(ExchangeSize, DependsOnWhoSharesMemory) {
  decent::Run run = run_of(2, "ring");
  run.task.device.sharing = Sharing::all;
  EXPECT_EQ(exchange_memory(run, 0), 2 * weights_of(run));
  run.task.device.sharing = Sharing::within_machines;
  EXPECT_EQ(exchange_memory(run, 0), 3 * weights_of(run));
}

// A ring of four on two machines: in one phase its pairs are inside, in the other between them.
decent::Run on_two_machines(const std::vector<int>& machines, const std::string& within = "fp32") {
  decent::Run run = run_of(4, "ring", "modulo2");
  run.task.recipe.parallel.comm_dtype_within = within;
  run.plan.machines = machines;
  return run;
}

constexpr double kOfModulo2 = 19.0 / 256;  // a message over the weights in float32

TEST(ExchangeSize, TellsEdgesWithinMachinesApart) {
  decent::Run run = on_two_machines({0, 0, 2, 2});
  const SentFacts sent = sent_facts(run, 4);
  EXPECT_EQ(sent.method, "modulo2 between machines, fp32 within");
  EXPECT_DOUBLE_EQ(sent.bytes.value(), kOfModulo2 / 2 * weights_of(run));
  EXPECT_DOUBLE_EQ(sent.bytes_within.value(), weights_of(run) / 2);
  EXPECT_EQ(unused_exchange(run), std::nullopt);
  // What comes from a pair's peer; a message of its own and the peer's.
  EXPECT_DOUBLE_EQ(exchange_memory(run, 0).value(), (1 + 3 * kOfModulo2) * weights_of(run));
  // Two copies that are read in place; what modulo sends may lie there, too.
  run.task.device.sharing = Sharing::within_machines;
  EXPECT_DOUBLE_EQ(exchange_memory(run, 0).value(), (2 + 5 * kOfModulo2) * weights_of(run));
  run.task.recipe.parallel.comm_dtype_within = std::nullopt;
  EXPECT_EQ(sent_facts(run, 4).bytes_within, std::nullopt);
  EXPECT_DOUBLE_EQ(sent_facts(run, 4).bytes.value(), kOfModulo2 * weights_of(run));
}

TEST(ExchangeSize, SaysWhichExchangeNoEdgeUses) {
  const decent::Run one = on_two_machines({0, 0, 0, 0});
  EXPECT_EQ(sent_facts(one, 4).bytes, 0);
  EXPECT_EQ(sent_facts(one, 4).bytes_within, weights_of(one));
  EXPECT_THAT(notices_of(one, 4).notes,
              Contains(HasSubstr("parallel.comm_dtype is not used: every edge")));
  const decent::Run four = on_two_machines({0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(sent_facts(four, 4).bytes.value(), kOfModulo2 * weights_of(four));
  EXPECT_EQ(sent_facts(four, 4).bytes_within, 0);
  EXPECT_THAT(notices_of(four, 4).notes,
              Contains(HasSubstr("parallel.comm_dtype_within is not used: no edge")));
  decent::Run alone = on_two_machines({0, 0, 2, 2});
  alone.task.recipe.parallel.method = "none";
  EXPECT_EQ(unused_exchange(alone), std::nullopt);
  EXPECT_EQ(sent_facts(alone, 4).bytes_within, std::nullopt);
}

// An all-reduce of n members sends 2 (n - 1) / n of what a pair does.
TEST(ExchangeSize, TellsOfEdgesOfMoreThanFour) {
  EXPECT_FALSE(large_edge(run_of(4, "complete")));
  const decent::Run run = run_of(8, "complete");
  const LargestEdge edge = large_edge(run).value();
  EXPECT_EQ(edge.members, 8);
  EXPECT_DOUBLE_EQ(edge.pairs, 1.75);
  EXPECT_DOUBLE_EQ(edge.bytes, 1.75 * weights_of(run));
  EXPECT_FALSE(large_edge(run_of(8, "one-peer-exp")));
}

TEST(ExchangeSize, OfGradientsIsThatOfAnAllReduce) {
  decent::Run run = run_of(4, "ring", "bf16");
  run.task.recipe.parallel.method = "all_reduce";
  run.plan.topology =
      parallel_method("all_reduce").phases(run.task.recipe.parallel, first_of(4).member());
  EXPECT_EQ(sent_facts(run, 4).method, "gradients in bf16");
  EXPECT_DOUBLE_EQ(sent_facts(run, 4).bytes.value(), 1.5 / 2 * weights_of(run));
  run.task.device.sharing = Sharing::within_machines;
  EXPECT_DOUBLE_EQ(exchange_memory(run, 0).value(), 1.5 * weights_of(run));
  std::string text;
  for (const std::string& line : dry_run_lines(dry_run_facts(run, first_of(4).member(), {})))
    text += line + "\n";
  EXPECT_THAT(text, HasSubstr("method     4 workers, all-reduce of gradients\n"
                              "exchange   gradients in bf16, sent: "));
  EXPECT_THAT(text, Not(HasSubstr("topology")));
}

TEST(ExchangeSize, IsNothingOfWorkersThatTrainAlone) {
  decent::Run run = run_of(4, "complete", "modulo2");
  run.task.recipe.parallel.method = "none";
  run.task.recipe.parallel.slices = 4;
  run.plan.topology =
      parallel_method("none").phases(run.task.recipe.parallel, first_of(4).member());
  EXPECT_EQ(sent_facts(run, 4).bytes, 0);
  EXPECT_EQ(exchange_memory(run, 0), 0);
  EXPECT_TRUE(notices_of(run, 4).warnings.empty());
}

TEST(ExchangeSize, IsNotKnownOfAMethodThatDoesNotSay) {
  register_exchange({.name = "silent", .make = exchange_method("fp32").make});
  const decent::Run run = run_of(8, "complete", "silent");
  EXPECT_EQ(sent_facts(run, 8).bytes, std::nullopt);
  EXPECT_EQ(exchange_memory(run, 0), std::nullopt);
  EXPECT_FALSE(large_edge(run));
  const decent::Run within = on_two_machines({0, 0, 2, 2}, "silent");
  EXPECT_EQ(sent_facts(within, 4).bytes, std::nullopt);
  EXPECT_EQ(exchange_memory(within, 0), std::nullopt);
  std::string text;
  for (const std::string& line : dry_run_lines(dry_run_facts(run, first_of(8).member(), {})))
    text += line + "\n";
  EXPECT_THAT(text, HasSubstr("exchange   silent, sent: not known\n"));
  EXPECT_THAT(text, HasSubstr("exchange not known"));
}

}  // namespace
}  // namespace decent
