// Every row of the losses against its definition, element by element in double.

#include "decent/task/losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::HasSubstr;

constexpr double kLossRounding = 1e-13;  // 50 terms below 10 with a few roundings of 1.1e-16 each
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kClasses = 5;
constexpr std::int64_t kIgnored = 3;

struct Example {
  at::Tensor output;
  at::Tensor target;
};

at::Tensor waves(double speed, double height) {
  return at::arange(kRows * kClasses, at::kDouble)
      .mul(speed)
      .sin()
      .mul(height)
      .view({kRows, kClasses});
}

// What LossFunction::reduced is given. Distances of numbers are on both sides of 1, where huber
// changes; the classes have two that are ignored.
Example example_of(TargetKind kind) {
  switch (kind) {
    case TargetKind::classes:
      return {waves(1.7, 3), at::tensor({0, 4, 3, 1, 3, 2}, at::kLong)};
    case TargetKind::events:
      return {waves(1.7, 3), waves(0.3, 0.5).add(0.5)};
    case TargetKind::numbers:
      return {waves(1.7, 3), waves(0.9, 1)};
    default:
      return {at::full({}, 2.5, at::kDouble), {}};
  }
}

at::Tensor loss_of(const LossFunction& loss, const Example& example, std::int64_t reduction,
                   double label_smoothing = 0) {
  return loss.reduced(example.output, example.target, reduction,
                      {.label_smoothing = label_smoothing, .ignore_index = kIgnored});
}

using OfElement = std::function<double(double output, double target)>;

double sum_over_elements(const Example& example, const OfElement& loss) {
  double sum = 0;
  for (std::int64_t i = 0; i < example.output.numel(); ++i) {
    sum +=
        loss(example.output.view(-1)[i].item<double>(), example.target.view(-1)[i].item<double>());
  }
  return sum;
}

// The classes are weighed with 1 - e for the target and e / C for each, as Szegedy and others
// smooth labels ("Rethinking the Inception architecture for computer vision", 2016).
double cross_entropy(const Example& example, double e) {
  double sum = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto target = example.target[row].item<std::int64_t>();
    if (target == kIgnored) continue;
    double exponentials = 0;
    for (std::int64_t c = 0; c < kClasses; ++c)
      exponentials += std::exp(example.output[row][c].item<double>());
    for (std::int64_t c = 0; c < kClasses; ++c) {
      const double weight = (c == target ? 1 - e : 0) + e / kClasses;
      sum += weight * (std::log(exponentials) - example.output[row][c].item<double>());
    }
  }
  return sum;
}

double nll(const Example& example) {
  double sum = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto target = example.target[row].item<std::int64_t>();
    if (target != kIgnored) sum -= example.output[row][target].item<double>();
  }
  return sum;
}

double huber(double output, double target) {
  const double distance = std::abs(output - target);
  return distance < 1 ? distance * distance / 2 : distance - 0.5;
}

double binary_cross_entropy(double logit, double probability) {
  const double predicted = 1 / (1 + std::exp(-logit));
  return -probability * std::log(predicted) - (1 - probability) * std::log(1 - predicted);
}

// Their sums over an example, as PyTorch's documentation defines them.
const std::map<std::string_view, std::function<double(const Example&)>> kDefinitions = {
    {"cross_entropy", [](const Example& example) { return cross_entropy(example, 0); }},
    {"nll", nll},
    {"mse",
     [](const Example& example) {
       return sum_over_elements(example, [](double f, double y) { return (f - y) * (f - y); });
     }},
    {"l1",
     [](const Example& example) {
       return sum_over_elements(example, [](double f, double y) { return std::abs(f - y); });
     }},
    {"huber", [](const Example& example) { return sum_over_elements(example, huber); }},
    {"bce_with_logits",
     [](const Example& example) { return sum_over_elements(example, binary_cross_entropy); }},
    {"output", [](const Example& example) { return example.output.item<double>(); }},
};

double elements_of(const LossFunction& loss, const Example& example) {
  if (loss.target == TargetKind::none) return 1;
  const at::Tensor& target = example.target;
  const bool has_classes = loss.target == TargetKind::classes;
  return static_cast<double>(has_classes ? target.ne(kIgnored).sum().item<std::int64_t>()
                                         : target.numel());
}

class EveryLoss : public ::testing::TestWithParam<LossFunction> {};

TEST_P(EveryLoss, IsWhatItsDefinitionSays) {
  const LossFunction& loss = GetParam();
  ASSERT_TRUE(kDefinitions.contains(loss.name)) << "give its definition here";
  const Example example = example_of(loss.target);
  const double expected = kDefinitions.at(loss.name)(example);
  EXPECT_GT(std::abs(expected), 0.1);
  const at::Tensor sum = loss_of(loss, example, at::Reduction::Sum);
  EXPECT_EQ(sum.dim(), 0);
  EXPECT_NEAR(sum.item<double>(), expected, kLossRounding);
  EXPECT_NEAR(loss_of(loss, example, at::Reduction::Mean).item<double>(),
              expected / elements_of(loss, example), kLossRounding);
}

TEST_P(EveryLoss, HasAGradient) {
  const LossFunction& loss = GetParam();
  Example example = example_of(loss.target);
  example.output.requires_grad_();
  loss_of(loss, example, at::Reduction::Mean).backward();
  EXPECT_GT(example.output.grad().abs().max().item<double>(), 0.01);
}

INSTANTIATE_TEST_SUITE_P(Losses, EveryLoss,
                         ::testing::ValuesIn(loss_functions().begin(), loss_functions().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

std::vector<LossFunction> losses_of(TargetKind kind) {
  std::vector<LossFunction> losses;
  for (const LossFunction& loss : loss_functions())
    if (loss.target == kind) losses.push_back(loss);
  return losses;
}

// What softmax makes of scores does not depend on a number that is added to all of them.
TEST(Losses, OfClassesApplyASoftmaxWhereTheySaySo) {
  for (const LossFunction& loss : losses_of(TargetKind::classes)) {
    Example example = example_of(loss.target);
    const double before = loss_of(loss, example, at::Reduction::Sum).item<double>();
    example.output = example.output.add(1);
    const double after = loss_of(loss, example, at::Reduction::Sum).item<double>();
    const bool applies = loss.activation == LossActivation::softmax;
    EXPECT_EQ(std::abs(after - before) < kLossRounding, applies) << loss.name;
  }
}

// A logit of 0 is a probability of 1/2, which costs ln 2 whatever is true.
TEST(Losses, OfEventsApplyASigmoidWhereTheySaySo) {
  for (const LossFunction& loss : losses_of(TargetKind::events)) {
    Example example = example_of(loss.target);
    example.output = example.output.mul(0);
    const double of_zeros = loss_of(loss, example, at::Reduction::Mean).item<double>();
    const bool applies = loss.activation == LossActivation::sigmoid;
    EXPECT_EQ(std::abs(of_zeros - std::numbers::ln2) < kLossRounding, applies) << loss.name;
  }
}

// A guess that knows nothing is as likely to be right as any other: it costs ln C.
TEST(Losses, OfClassesKnowWhatZerosSay) {
  for (const LossFunction& loss : losses_of(TargetKind::classes)) {
    const at::Tensor zeros = at::zeros({1, kClasses}, at::kDouble);
    const at::Tensor target = at::zeros({1}, at::kLong);
    const double of_zeros = loss.reduced(zeros, target, at::Reduction::Mean, {}).item<double>();
    EXPECT_EQ(std::abs(of_zeros - std::log(kClasses)) < kLossRounding, loss.zeros_know_nothing)
        << loss.name;
  }
}

TEST(Losses, CrossEntropySmoothsLabels) {
  const Example example = example_of(TargetKind::classes);
  EXPECT_NEAR(
      loss_of(loss_function("cross_entropy"), example, at::Reduction::Sum, 0.2).item<double>(),
      cross_entropy(example, 0.2), kLossRounding);
}

TEST(Losses, AreFoundByName) {
  for (const std::string& name : loss_names()) EXPECT_EQ(loss_function(name).name, name);
  try {
    loss_function("mes");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown loss 'mes'; valid: cross_entropy, nll, mse"));
  }
}

}  // namespace
}  // namespace decent
