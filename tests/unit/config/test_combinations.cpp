// Keys that depend on each other, and values with an inside: topologies, groups, traces.

#include <gmock/gmock.h>

#include "support.h"

namespace decent {
namespace {

using test::kSmallest;
using test::parse;
using test::refusal;
using test::refusal_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Combinations, NesterovNeedsMomentumInSgd) {
  EXPECT_EQ(refusal(kSmallest + "optimizer:\n  name: sgd\n  momentum: 0\n  nesterov: true\n"),
            "run.yaml:6:13: optimizer.nesterov: true needs optimizer.momentum > 0");
  for (const char* optimizer : {"{momentum: 0, nesterov: true}", "{name: sgd, nesterov: true}"}) {
    const Recipe recipe = parse(kSmallest, {std::string("optimizer=") + optimizer});
    EXPECT_EQ(recipe.optimizer.options.value("nesterov"), OptionValue(true));
  }
}

TEST(Combinations, KeysThatAnotherChoiceMakesMeaninglessAreChecked) {
  EXPECT_EQ(parse(kSmallest, {"optimizer.momentum=0.5"}).optimizer.options.value("momentum"),
            OptionValue(0.5));
  EXPECT_THAT(refusal_of("optimizer.momentum=2"), HasSubstr("expected a number in [0, 1)"));
}

TEST(Combinations, Topologies) {
  for (const std::string name : {"complete", "ring", "one-peer-exp", "alternating-exp-ring"}) {
    EXPECT_EQ(parse(kSmallest, {"parallel.topology=" + name}).parallel.topology.name, name);
  }
  EXPECT_THAT(refusal_of("parallel.topology=one_peer_exp"),
              HasSubstr("did you mean 'one-peer-exp'?"));
}

TEST(Combinations, AGlobalClipNeedsTheWholeGradient) {
  EXPECT_THAT(refusal_of("parallel={update: in_backward, grad_clip_norm: 1}"),
              HasSubstr("parallel.update: in_backward updates weights before"));
  for (const std::string fine :
       {"parallel={update: in_backward, grad_clip_norm: 1, grad_clip_scope: bucket}",
        "parallel={update: in_backward}", "parallel={update: after_backward, grad_clip_norm: 1}"}) {
    EXPECT_NO_THROW(parse(kSmallest, {fine})) << fine;
  }
}

TEST(Combinations, ModuloNeedsAnOptimizerWhoseStepsTheLearningRateBounds) {
  const std::string of_modulo = kSmallest + "parallel:\n  comm_dtype: modulo2\n";
  EXPECT_EQ(refusal(of_modulo, {"optimizer.name=rmsprop"}),
            "run.yaml:4:15: parallel.comm_dtype: modulo2 sends the last bits of a weight's place "
            "on a grid that follows the learning rate, which does not bound the steps of rmsprop; "
            "use optimizer.name: adamw, adam, accum_adam, accum_adamw, lion, adagrad, nadam, "
            "nadamw, muon, or comm_dtype: bf16, or parallel.slices");
  EXPECT_THAT(refusal(of_modulo, {"optimizer.name=sgd"}), HasSubstr("the steps of sgd;"));
  EXPECT_THAT(refusal(of_modulo, {"optimizer.name=radamw"}), HasSubstr("the steps of radamw;"));
  EXPECT_THAT(refusal(of_modulo, {"optimizer.name=adafactor"}),
              HasSubstr("the steps of adafactor;"));
  for (const std::string name :
       {"adamw", "adam", "accum_adam", "accum_adamw", "lion", "adagrad", "nadam", "nadamw"})
    EXPECT_EQ(parse(of_modulo, {"optimizer.name=" + name}).parallel.comm_dtype, "modulo2");
  EXPECT_EQ(parse(of_modulo, {"optimizer.name=sgd", "parallel.comm_dtype=bf16"}).optimizer.name,
            "sgd");
}

TEST(Combinations, ModuloInsideAMachineNeedsSuchAnOptimizerToo) {
  const std::string with_sgd = kSmallest + "optimizer:\n  name: sgd\nparallel:\n";
  EXPECT_THAT(refusal(with_sgd + "  comm_dtype: bf16\n  comm_dtype_within: modulo2\n"),
              AllOf(HasSubstr("run.yaml:7:22: parallel.comm_dtype_within: modulo2 sends"),
                    HasSubstr("the steps of sgd;"), HasSubstr("or comm_dtype_within: bf16")));
  EXPECT_THAT(refusal(with_sgd + "  comm_dtype: modulo2\n  comm_dtype_within: fp32\n"),
              HasSubstr("parallel.comm_dtype: modulo2 sends"));
  EXPECT_EQ(parse(with_sgd + "  comm_dtype: bf16\n  comm_dtype_within: fp32\n")
                .parallel.comm_dtype_within,
            "fp32");
}

TEST(Combinations, SlicesAndARangeAreTakenWithEveryExchange) {
  const ParallelRecipe parallel =
      parse(kSmallest, {"parallel={slices: 4, modulo_range: 20}"}).parallel;
  EXPECT_EQ(parallel.slices, 4);
  EXPECT_EQ(parallel.exchange_options.value("modulo_range"), OptionValue(20.0));
  EXPECT_EQ(parallel.comm_dtype, "fp32");
}

TEST(Combinations, GradientsAreSentWholeAndInFewWays) {
  const std::string all_reduce = kSmallest + "parallel:\n  method: all_reduce\n";
  EXPECT_EQ(
      refusal(all_reduce + "  comm_dtype: modulo2\n  slices: 4\n"),
      "2 mistakes in run.yaml:\n"
      "run.yaml:5:15: parallel.comm_dtype: modulo2 cannot be used with parallel.method: "
      "all_reduce, "
      "which does not exchange weights; valid: fp32, bf16\n"
      "run.yaml:6:11: parallel.slices: 4 cannot be used with parallel.method: all_reduce, which "
      "sends every gradient in the step that it belongs to; valid: 1");
  EXPECT_EQ(refusal(all_reduce + "  comm_dtype_within: fp32\n"),
            "run.yaml:5:22: parallel.comm_dtype_within: fp32 cannot be used with parallel.method: "
            "all_reduce, which adds gradients up over all workers in one type; valid: null");
  EXPECT_EQ(parse(all_reduce + "  comm_dtype: bf16\n").parallel.method, "all_reduce");
  EXPECT_EQ(parse(all_reduce).parallel.bucket_mb, 4);
  EXPECT_EQ(parse(all_reduce + "  bucket_mb: 25\n").parallel.bucket_mb, 25);
  EXPECT_EQ(parse(kSmallest).parallel.bucket_mb, 25);
  // What nobody sends may be anything, also what the optimizer could not do.
  EXPECT_EQ(
      parse(kSmallest,
            {"parallel={method: none, comm_dtype: modulo2, comm_dtype_within: modulo2, slices: 4}",
             "optimizer.name=sgd"})
          .parallel.method,
      "none");
  EXPECT_THAT(refusal(kSmallest, {"parallel.method=allreduce"}), HasSubstr("all_reduce"));
}

TEST(Combinations, CustomTopologiesAreChecked) {
  const auto refused = [](const std::string& phases) {
    return refusal_of("parallel.topology={phases: " + phases + "}");
  };
  const TopologyRecipe topology =
      parse(kSmallest, {"parallel.topology={phases: [[{ranks: [1, 0], weight: 0.25}]]}"})
          .parallel.topology;
  EXPECT_EQ(topology.phases.at(0).at(0), (EdgeRecipe{.ranks = {1, 0}, .weight = 0.25}));
  EXPECT_THAT(refused("[]"), HasSubstr("expected a list of phases, not empty"));
  EXPECT_THAT(refused("[[]]"), HasSubstr("phase 0 has no edges"));
  EXPECT_THAT(refused("[[{ranks: [], weight: 1}]]"), HasSubstr("an edge without ranks"));
  EXPECT_THAT(
      refused("[[{ranks: [0], weight: 1}], [{ranks: [1], weight: 1}, {ranks: [1], weight: 1}]]"),
      HasSubstr("phase 1 has rank 1 twice"));
  EXPECT_THAT(refused("[[{ranks: [0, -1], weight: 1}]]"),
              HasSubstr("expected an integer >= 0, got '-1'"));
  EXPECT_THAT(refused("[[{ranks: [0], weight: 0}]]"),
              HasSubstr("expected a number in (0, 1], got '0'"));
  EXPECT_THAT(refused("[[{ranks: [0]}]]"), HasSubstr("weight: missing"));
  EXPECT_THAT(refused("[[{ranks: [0], wieght: 1, weight: 1}]]"),
              HasSubstr("unknown key; did you mean 'weight'?"));
  EXPECT_THAT(refused("3"), HasSubstr("parallel.topology.phases: expected a list of lists of"));
  EXPECT_THAT(refusal_of("parallel.topology={phase: 3}"), HasSubstr("did you mean 'phases'?"));
}

TEST(Combinations, ParameterGroups) {
  EXPECT_THAT(
      refusal_of("optimizer.param_groups=[{match: a, lr_scale: -1}]"),
      HasSubstr("optimizer.param_groups.lr_scale: expected a number >= 0 or null, got '-1'"));
}

TEST(Combinations, Traces) {
  EXPECT_THAT(refusal_of("log.trace=[3, 2]"), HasSubstr("the first step comes after the last"));
  EXPECT_THAT(refusal_of("log.trace=[1, 2, 3]"), HasSubstr("expected a list of 2 integers >= 1"));
}

}  // namespace
}  // namespace decent
