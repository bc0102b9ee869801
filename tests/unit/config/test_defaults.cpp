// Every default of the contract, as far as this release acts on it.

#include "support.h"

namespace decent {
namespace {

using test::kData;
using test::kModel;
using test::kSmallest;
using test::parse;

TEST(Defaults, Top) {
  const Recipe recipe = parse(kSmallest);
  EXPECT_EQ(recipe.name, "run");
  EXPECT_EQ(recipe.seed, 0);
  EXPECT_EQ(recipe.output, "runs/run");
}

TEST(Defaults, OutputFollowsName) {
  EXPECT_EQ(parse("name: mine\n" + kSmallest).output, "runs/mine");
  EXPECT_EQ(parse("name: mine\noutput: out\n" + kSmallest).output, "out");
}

TEST(Defaults, Model) {
  const ModelRecipe model = parse(kSmallest).model;
  EXPECT_EQ(model.inputs, (std::vector<ModelInput>{{"", "x"}}));
  EXPECT_EQ(model.target, "y");
  EXPECT_EQ(model.output, std::nullopt);
  EXPECT_EQ(model.loss, "cross_entropy");
  EXPECT_EQ(model.label_smoothing, 0.0);
  EXPECT_EQ(model.ignore_index, -100);
  EXPECT_EQ(model.class_dim, -1);
  EXPECT_EQ(model.memory_format, MemoryFormat::contiguous);
  EXPECT_EQ(model.weights, std::nullopt);
  EXPECT_TRUE(model.freeze.empty());
  EXPECT_TRUE(model.unfreeze.empty());
  EXPECT_EQ(model.device, DeviceName::automatic);
  EXPECT_FALSE(model.fast_math);
}

TEST(Defaults, Data) {
  const DataRecipe data = parse(kSmallest).data;
  EXPECT_EQ(data.eval, std::nullopt);
  EXPECT_EQ(data.predict, std::nullopt);
  EXPECT_EQ(data.batch_size, 32);
  EXPECT_EQ(data.eval_batch_size, 256);
  EXPECT_TRUE(data.shuffle);
  EXPECT_EQ(data.prefetch, 2);
}

TEST(Defaults, Train) {
  const TrainRecipe train = parse(kSmallest).train;
  EXPECT_EQ(train.epochs, 1);
  EXPECT_EQ(train.steps, std::nullopt);
  EXPECT_EQ(train.grad_accumulation, 1);
}

TEST(Defaults, EpochsStayOpenWhereStepsAreGiven) {
  const TrainRecipe train = parse(kSmallest + "train: {steps: 7}\n").train;
  EXPECT_EQ(train.epochs, std::nullopt);
  EXPECT_EQ(train.steps, 7);
}

TEST(Defaults, Optimizer) {
  const OptimizerRecipe optimizer = parse(kSmallest).optimizer;
  EXPECT_EQ(optimizer.name, "adamw");
  EXPECT_EQ(optimizer.lr, 1e-3);
  EXPECT_EQ(optimizer.lr_scaling, LrScaling::none);
  EXPECT_EQ(optimizer.betas, (std::array<double, 2>{0.9, 0.999}));
  EXPECT_EQ(optimizer.eps, 1e-8);
  EXPECT_EQ(optimizer.momentum, 0.9);
  EXPECT_FALSE(optimizer.nesterov);
  EXPECT_EQ(optimizer.accum_iter, 4);
  EXPECT_EQ(optimizer.alpha, 0.99);
  EXPECT_EQ(optimizer.weight_decay, 0.1);
  EXPECT_TRUE(optimizer.param_groups.empty());
}

TEST(Defaults, WeightDecayDependsOnTheOptimizer) {
  EXPECT_EQ(parse(kSmallest, {"optimizer.name=adam"}).optimizer.weight_decay, 0.0);
  EXPECT_EQ(parse(kSmallest, {"optimizer.name=sgd"}).optimizer.weight_decay, 0.0);
  EXPECT_EQ(parse(kSmallest, {"optimizer.weight_decay=null"}).optimizer.weight_decay, 0.1);
  EXPECT_EQ(parse(kSmallest, {"optimizer.weight_decay=0"}).optimizer.weight_decay, 0.0);
}

TEST(Defaults, BetasAndMomentumDependOnTheOptimizer) {
  const auto optimizer = [](std::vector<std::string> overrides) {
    const Recipe recipe = parse(kSmallest, overrides);
    EXPECT_EQ(parse(print_recipe(recipe)), recipe);  // what is resolved is not resolved again
    return recipe.optimizer;
  };
  using Betas = std::array<double, 2>;
  EXPECT_EQ(optimizer({"optimizer.name=lion"}).betas, (Betas{0.9, 0.99}));
  EXPECT_EQ(optimizer({"optimizer.name=lion", "optimizer.betas=[0.9, 0.999]"}).betas,
            (Betas{0.9, 0.999}));
  EXPECT_EQ(optimizer({"optimizer.name=lion"}).weight_decay, 0.0);
  EXPECT_EQ(optimizer({"optimizer.name=rmsprop"}).momentum, 0.0);
  EXPECT_EQ(optimizer({"optimizer.name=rmsprop", "optimizer.momentum=0.5"}).momentum, 0.5);
  EXPECT_EQ(optimizer({"optimizer.name=sgd"}).momentum, 0.9);
}

TEST(Defaults, Schedule) {
  const ScheduleRecipe schedule = parse(kSmallest).schedule;
  EXPECT_EQ(schedule.name, "cosine_warmup");
  EXPECT_EQ(schedule.warmup_steps, 0);
  EXPECT_EQ(schedule.t_max, std::nullopt);
  EXPECT_EQ(schedule.eta_min, 1e-6);
  EXPECT_EQ(schedule.warmup_decay, 0.01);
  EXPECT_EQ(schedule.start_factor, 1.0 / 3);
  EXPECT_EQ(schedule.end_factor, 1);
  EXPECT_EQ(schedule.total_iters, 5);
  EXPECT_EQ(schedule.step_size, std::nullopt);
  EXPECT_EQ(schedule.gamma, std::nullopt);
  EXPECT_EQ(schedule.total_steps, std::nullopt);
  EXPECT_EQ(schedule.pct_start, 0.3);
  EXPECT_EQ(schedule.anneal_strategy, AnnealStrategy::cos);
  EXPECT_EQ(schedule.div_factor, 25);
  EXPECT_EQ(schedule.final_div_factor, 1e4);
  EXPECT_FALSE(schedule.three_phase);
  EXPECT_EQ(schedule.metric, "loss");
  EXPECT_EQ(schedule.mode, std::nullopt);
  EXPECT_EQ(schedule.eps, 1e-8);
  EXPECT_EQ(schedule.factor, 0.1);
  EXPECT_EQ(schedule.patience, 10);
  EXPECT_EQ(schedule.threshold, 1e-4);
  EXPECT_EQ(schedule.threshold_mode, ThresholdMode::relative);
  EXPECT_EQ(schedule.cooldown, 0);
  EXPECT_EQ(schedule.min_lr, 0);
}

TEST(Defaults, Parallel) {
  const ParallelRecipe parallel = parse(kSmallest).parallel;
  EXPECT_EQ(parallel.topology, (TopologyRecipe{"complete", {}}));
  EXPECT_EQ(parallel.local_world_size, std::nullopt);
  EXPECT_EQ(parallel.bucket_mb, 25.0);
  EXPECT_EQ(parallel.gamma, 1.0);
  EXPECT_EQ(parallel.grad_clip_norm, 0.0);
  EXPECT_EQ(parallel.grad_clip_scope, ClipScope::global);
  EXPECT_EQ(parallel.update, UpdateMode::automatic);
  EXPECT_TRUE(parallel.average_buffers);
  EXPECT_EQ(parallel.comm_dtype, "fp32");
  EXPECT_EQ(parallel.comm_dtype_within, std::nullopt);
  EXPECT_EQ(parallel.slices, 1);
  EXPECT_EQ(parallel.modulo_range, std::nullopt);
  EXPECT_EQ(parallel.link_mbit, std::nullopt);
  EXPECT_EQ(parallel.backend, BackendName::automatic);
  EXPECT_EQ(parallel.timeout_s, 60.0);
  EXPECT_EQ(parallel.stall_s, std::nullopt);
}

TEST(Defaults, Amp) {
  const AmpRecipe amp = parse(kSmallest).amp;
  EXPECT_EQ(amp.dtype, AmpDType::off);
  EXPECT_EQ(amp.init_scale, 65536.0);
  EXPECT_EQ(amp.growth_factor, 2.0);
  EXPECT_EQ(amp.backoff_factor, 0.5);
  EXPECT_EQ(amp.growth_interval, 2000);
}

TEST(Defaults, EvalAndLog) {
  const Recipe recipe = parse(kSmallest);
  EXPECT_EQ(recipe.eval.every_steps, std::nullopt);
  EXPECT_EQ(recipe.eval.every_epochs, 1);
  EXPECT_FALSE(recipe.eval.at_start);
  EXPECT_EQ(recipe.eval.metrics, std::nullopt);
  EXPECT_EQ(recipe.log.every_steps, 10);
  EXPECT_EQ(recipe.log.progress, ProgressStyle::automatic);
  EXPECT_EQ(recipe.log.trace, std::nullopt);
}

TEST(Defaults, Checkpoint) {
  const Recipe recipe = parse(kSmallest);
  EXPECT_EQ(recipe.checkpoint.every_steps, std::nullopt);
  EXPECT_EQ(recipe.checkpoint.every_epochs, 1);
  EXPECT_EQ(recipe.checkpoint.keep, 3);
  EXPECT_EQ(recipe.checkpoint.keep_best, std::nullopt);
  EXPECT_TRUE(recipe.checkpoint.background);
  EXPECT_FALSE(recipe.checkpoint.allow_missing);
}

}  // namespace
}  // namespace decent
