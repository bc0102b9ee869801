#include "decent/task/task.h"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../support/digits.h"
#include "../support/refusal.h"
#include "decent/parallel/named_tensors.h"
#include "decent/task/trial.h"

namespace decent {
namespace {

using testing::digits_recipe;
using testing::refusal;

const std::vector<std::int64_t> kFirstBatch = {0, 1, 2, 3, 4, 5, 6, 7};

Trial try_on_one_worker(Task& task) { return try_task(task, {}, kFirstBatch); }

TEST(Task, HasTheDataThatItsPurposeNeeds) {
  const Recipe recipe = digits_recipe("digits_mlp.pt");
  const Task training = open_task(recipe, {}, Purpose::training);
  EXPECT_EQ(training.train->size(), 1442);
  EXPECT_EQ(training.eval->size(), 355);
  const Task evaluation = open_task(recipe, {}, Purpose::evaluation);
  EXPECT_FALSE(evaluation.train);
  EXPECT_TRUE(evaluation.eval);
  const Task model = open_task(recipe, {}, Purpose::model);
  EXPECT_FALSE(model.train);
  EXPECT_FALSE(model.eval);
}

TEST(Task, RefusesAMetricToKeepBestByThatIsNotMeasured) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.checkpoint.keep_best = "mse";
  EXPECT_THAT(refusal([&] { open_task(recipe, {}, Purpose::training); }),
              ::testing::HasSubstr("checkpoint.keep_best: evaluations do not measure mse"));
}

// PyTorch's own default is TF32 in convolutions. Needs no GPU.
TEST(Task, SaysHowAGpuComputes) {
  const at::Context& context = at::globalContext();
  for (const bool fast : {true, false}) {
    Recipe recipe = digits_recipe("digits_mlp.pt");
    recipe.model.fast_math = fast;
    open_task(recipe, {}, Purpose::evaluation);
    EXPECT_EQ(context.allowTF32CuBLAS(), fast);
    EXPECT_EQ(context.allowTF32CuDNN(at::Float32Op::CONV), fast);
    EXPECT_EQ(context.allowTF32CuDNN(at::Float32Op::RNN), fast);
    EXPECT_EQ(context.benchmarkCuDNN(), fast);
  }
}

// Batch norm counts its batches in forward.
TEST(Trial, LeavesBuffersAsTheyWere) {
  Task task = open_task(digits_recipe("digits_cnn.pt"), {}, Purpose::training);
  std::vector<at::Tensor> before;
  for (const auto& [name, buffer] : task.model->buffers()) before.push_back(buffer.clone());
  ASSERT_FALSE(before.empty());
  try_on_one_worker(task);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(at::equal(task.model->buffers()[i].second, before[i]));
}

TEST(Trial, LeavesNoGradients) {
  Task task = open_task(digits_recipe("digits_mlp.pt"), {}, Purpose::training);
  const Trial found = try_on_one_worker(task);
  for (const auto& [name, parameter] : task.model->parameters())
    EXPECT_FALSE(parameter.grad().defined()) << name;
  EXPECT_THAT(found.without_gradient, ::testing::IsEmpty());
  EXPECT_FALSE(found.weights_needed_later);
}

// Ten classes, all alike: ln 10.
TEST(Trial, KnowsTheLossOfAModelThatKnowsNothing) {
  Task task = open_task(digits_recipe("digits_mlp.pt"), {}, Purpose::training);
  const Trial found = try_on_one_worker(task);
  EXPECT_DOUBLE_EQ(*found.untrained_loss.zeros, std::log(10.0));
  EXPECT_EQ(found.divergence, "");
  EXPECT_EQ(found.gives_probabilities, false);
}

TEST(Trial, NamesTheFirstParameterThatIsNotFinite) {
  Task task = open_task(digits_recipe("digits_mlp.pt"), {}, Purpose::training);
  const auto& [name, parameter] = task.model->parameters().front();
  parameter.detach().fill_(std::nan(""));
  EXPECT_THAT(try_on_one_worker(task).divergence,
              ::testing::HasSubstr("parameter '" + name + "' is the first that is not finite"));
}

TEST(Trial, OfAnEvaluationRunsNoBackward) {
  Task task = open_task(digits_recipe("digits_mlp.pt"), {}, Purpose::evaluation);
  const Trial found = try_task(task, {}, {});
  EXPECT_EQ(found.gives_probabilities, false);
  EXPECT_FALSE(found.untrained_loss.zeros);
}

}  // namespace
}  // namespace decent
