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
  const ReducedLoss reduced = loss.make({{"label_smoothing", label_smoothing}});
  return reduced(example.output, example.target, reduction, {.ignore_index = kIgnored});
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

// Of a row: the probabilities that the softmax makes of it.
std::vector<double> softmax(const at::Tensor& row) {
  std::vector<double> values;
  double sum = 0;
  for (std::int64_t c = 0; c < row.size(0); ++c) {
    values.push_back(std::exp(row[c].item<double>()));
    sum += values.back();
  }
  for (double& value : values) value /= sum;
  return values;
}

// Of the rows that count: the cross entropy, times (1 - p)^gamma, times the class's weight.
double focal(const Example& example, double gamma, const std::vector<double>& weights) {
  double sum = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto target = example.target[row].item<std::int64_t>();
    if (target == kIgnored) continue;
    const double p = softmax(example.output[row])[static_cast<std::size_t>(target)];
    sum -= weights[static_cast<std::size_t>(target)] * std::pow(1 - p, gamma) * std::log(p);
  }
  return sum;
}

const std::vector<double> kAlike(kClasses, 1.0);

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
    {"focal", [](const Example& example) { return focal(example, 2, kAlike); }},
    {"kl",
     [](const Example& example) { return cross_entropy(example, 0); }},  // of one certain class
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

TEST(Losses, WeighClasses) {
  const std::vector<double> weights = {0.5, 2, 1, 7, 3};
  const Example example = example_of(TargetKind::classes);  // classes 0, 4 and 2 count
  const auto sum_of = [&](const char* name, double gamma) {
    const ReducedLoss reduced = loss_function(name).make({{"focal_gamma", gamma}});
    return reduced(example.output, example.target, at::Reduction::Sum,
                   {.ignore_index = kIgnored, .weights = at::tensor(weights, at::kDouble)})
        .item<double>();
  };
  EXPECT_NEAR(sum_of("focal", 2), focal(example, 2, weights), kLossRounding);
  EXPECT_NEAR(sum_of("focal", 0.5), focal(example, 0.5, weights), kLossRounding);
  EXPECT_NEAR(sum_of("cross_entropy", 2), focal(example, 0, weights), kLossRounding);
  EXPECT_NEAR(sum_of("focal", 0), focal(example, 0, weights), kLossRounding);
}

// sum y (ln y - ln p), with 0 ln 0 = 0, as a mean over rows.
TEST(Losses, KullbackLeiblerIsOfProbabilities) {
  const Example example = example_of(TargetKind::classes);
  const at::Tensor target = at::zeros({kRows, kClasses}, at::kDouble);
  double expected = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const double share = static_cast<double>(row + 1) / (kRows + 2);
    target[row][1] = share;
    target[row][3] = 1 - share;
    const std::vector<double> p = softmax(example.output[row]);
    expected += share * std::log(share / p[1]) + (1 - share) * std::log((1 - share) / p[3]);
  }
  const auto kl = [&](const at::Tensor& output, std::int64_t reduction) {
    return loss_function("kl").make({})(output, target, reduction, {}).item<double>();
  };
  EXPECT_NEAR(kl(example.output, at::Reduction::Sum), expected, kLossRounding);
  EXPECT_NEAR(kl(example.output, at::Reduction::Mean), expected / kRows, kLossRounding);
  EXPECT_NEAR(kl(example.output.log_softmax(-1), at::Reduction::Sum), expected, kLossRounding);
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
    // The gamma of focal would make it (1 - 1 / C)^gamma times that.
    const double of_zeros =
        loss.make({{"focal_gamma", 0}})(zeros, target, at::Reduction::Mean, {}).item<double>();
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
  for (const LossFunction& loss : loss_functions()) EXPECT_EQ(&loss_function(loss.name), &loss);
  try {
    loss_function("mes");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("unknown loss 'mes'; valid: cross_entropy, nll, focal, kl, mse"));
  }
}

}  // namespace
}  // namespace decent
