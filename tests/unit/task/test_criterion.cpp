#include "decent/task/criterion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Criterion kCrossEntropy("cross_entropy");
const Criterion kMse("mse");

at::Tensor logits_of(at::IntArrayRef sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return at::arange(n, at::kDouble).mul_(1.7).sin_().mul_(3).view(sizes);
}

at::Tensor classes_of(const std::vector<std::int64_t>& classes) {
  return at::tensor(classes, at::kLong);
}

// -log softmax(row)[c], as the definition reads.
double negative_log_likelihood(const at::Tensor& row, std::int64_t c) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.size(0); ++i) sum += std::exp(row[i].item<double>());
  return std::log(sum) - row[c].item<double>();
}

std::string refusal(const Criterion& criterion, const at::Tensor& output,
                    const at::Tensor& target) {
  try {
    criterion.mean_loss(output, target);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr double kRounding = 1e-14;  // some 20 roundings of 1.1e-16 of values below 10

TEST(CrossEntropy, IsTheMeanOverSamples) {
  const at::Tensor logits = logits_of({4, 5});
  const std::vector<std::int64_t> classes = {0, 4, 2, 2};
  double expected = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    expected += negative_log_likelihood(logits[i], classes[static_cast<std::size_t>(i)]) / 4;
  }
  const at::Tensor loss = kCrossEntropy.mean_loss(logits, classes_of(classes)).tensor;
  EXPECT_EQ(loss.dim(), 0);
  EXPECT_NEAR(loss.item<double>(), expected, kRounding);
}

// Of each row: some of class 0 and of class 4.
at::Tensor probabilities_of(std::int64_t rows, std::int64_t classes) {
  const at::Tensor all = at::zeros({rows, classes}, at::kDouble);
  for (std::int64_t i = 0; i < rows; ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(rows + 3);
    all[i][0] = share;
    all[i][4] = 1 - share;
  }
  return all;
}

TEST(CrossEntropy, TakesProbabilities) {
  const at::Tensor logits = logits_of({4, 5});
  const at::Tensor targets = probabilities_of(4, 5);
  double expected = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t c = 0; c < 5; ++c)
      expected += targets[i][c].item<double>() * negative_log_likelihood(logits[i], c) / 4;
  }
  EXPECT_NEAR(kCrossEntropy.mean_loss(logits, targets).value, expected, kRounding);
  // float32 shares are rounded once
  EXPECT_NEAR(kCrossEntropy.mean_loss(logits, targets.to(at::kFloat)).value, expected, 1e-6);
  const Criterion by_column("cross_entropy", {.class_dim = 1});
  const auto in_columns = [](const at::Tensor& rows) { return rows.view({2, 2, 5}).movedim(2, 1); };
  EXPECT_NEAR(by_column.mean_loss(in_columns(logits), in_columns(targets)).value, expected,
              kRounding);
}

TEST(CrossEntropy, ProbabilitiesAreEvaluatedByTheMostProbableClass) {
  const at::Tensor logits = logits_of({4, 5});
  const at::Tensor targets = probabilities_of(4, 5);
  const EvaluatedBatch batch = kCrossEntropy.evaluate(logits, targets, 4);
  EXPECT_EQ(batch.loss.item<double>() / 4, kCrossEntropy.mean_loss(logits, targets).value);
  EXPECT_EQ(std::get<double>(batch.elements), 4);
  EXPECT_TRUE(batch.target.equal(classes_of({4, 4, 4, 0})));  // shares 1/7, 2/7, 3/7, 4/7
  EXPECT_TRUE(batch.counts.all().item<bool>());
}

TEST(CrossEntropy, RefusesProbabilitiesWhereClassesAreIgnored) {
  const at::Tensor logits = logits_of({4, 5});
  EXPECT_THAT(
      refusal(Criterion("cross_entropy", {.ignore_index = 3}), logits, probabilities_of(4, 5)),
      HasSubstr("model.ignore_index: the target float64[4, 5] holds probabilities"));
  EXPECT_THAT(refusal(Criterion("nll"), logits, probabilities_of(4, 5)),
              HasSubstr("do not fit the loss nll"));
  EXPECT_THAT(refusal(kCrossEntropy, logits, probabilities_of(3, 5)),
              HasSubstr("or their probabilities, of the same shape"));
}

double unread(const at::Tensor& logits, const at::Tensor& classes) {
  return kCrossEntropy.unread_mean_loss(logits, classes, classes).item<double>();
}

TEST(CrossEntropy, TakesClassesOfAnyIntegerType) {
  const at::Tensor logits = logits_of({3, 4});
  const at::Tensor classes = classes_of({3, 0, 1});
  const double expected = kCrossEntropy.mean_loss(logits, classes).value;
  for (const at::ScalarType dtype : {at::kByte, at::kChar, at::kShort, at::kInt}) {
    EXPECT_EQ(kCrossEntropy.mean_loss(logits, classes.to(dtype)).value, expected);
    EXPECT_EQ(unread(logits, classes.to(dtype)), expected);
  }
}

// 256 - 100, which -100 would be among bytes.
TEST(CrossEntropy, DoesNotTakeAClassForTheIgnoredOne) {
  const at::Tensor logits = logits_of({2, 200}), classes = classes_of({156, 156});
  EXPECT_EQ(unread(logits, classes.to(at::kByte)), kCrossEntropy.mean_loss(logits, classes).value);
}

TEST(CrossEntropy, TreatsEveryPositionAsASample) {
  const at::Tensor logits = logits_of({2, 3, 7});
  const at::Tensor classes = classes_of({6, 0, 3, 1, 1, 5});
  EXPECT_EQ(kCrossEntropy.mean_loss(logits, classes.view({2, 3})).value,
            kCrossEntropy.mean_loss(logits.view({6, 7}), classes).value);
  EXPECT_NEAR(kCrossEntropy.mean_loss(logits[0][1], classes[1]).value,
              negative_log_likelihood(logits[0][1], 0), kRounding);
}

TEST(CrossEntropy, LeavesOutIgnoredClasses) {
  const at::Tensor logits = logits_of({4, 5});
  const at::Tensor classes = classes_of({0, -100, 2, -100});
  const double first = negative_log_likelihood(logits[0], 0);
  const double third = negative_log_likelihood(logits[2], 2);
  EXPECT_NEAR(kCrossEntropy.mean_loss(logits, classes).value, (first + third) / 2, kRounding);
  const EvaluatedBatch batch = kCrossEntropy.evaluate(logits, classes, 4);
  EXPECT_NEAR(batch.loss.item<double>(), first + third, kRounding);
  EXPECT_EQ(std::get<at::Tensor>(batch.elements).item<std::int64_t>(), 2);
}

TEST(CrossEntropy, HasAGradient) {
  const at::Tensor logits = logits_of({2, 3}).requires_grad_();
  kCrossEntropy.mean_loss(logits, classes_of({1, 2})).tensor.backward();
  // softmax minus one-hot: every row sums to zero.
  EXPECT_LT(logits.grad().sum(1).abs().max().item<double>(), kRounding);
  EXPECT_GT(logits.grad().abs().max().item<double>(), 0.1);
}

TEST(CrossEntropy, NamesAClassOutOfRange) {
  const at::Tensor logits = logits_of({3, 4});
  EXPECT_THAT(refusal(kCrossEntropy, logits, classes_of({0, 4, 1})),
              AllOf(HasSubstr("class 4"), HasSubstr("4 classes: 0 to 3")));
  EXPECT_THAT(refusal(kCrossEntropy, logits, classes_of({0, -1, 9})), HasSubstr("class -1"));
  EXPECT_THAT(refusal(kCrossEntropy, logits, classes_of({-100, 5, -100})), HasSubstr("class 5"));
}

// On a GPU they are looked for before the loss, whose kernels would only say that something is
// wrong.
TEST(CrossEntropy, LooksForClassesOutOfRangeWithoutTheLoss) {
  const auto check = [](const Criterion& criterion, const at::Tensor& output,
                        std::initializer_list<std::int64_t> classes) {
    try {
      criterion.check_classes(output, classes_of(classes));
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const at::Tensor logits = logits_of({3, 4});
  EXPECT_EQ(check(kCrossEntropy, logits, {0, 3, -100}), "accepted");
  EXPECT_EQ(check(kCrossEntropy, logits, {-100, -100, -100}), "accepted");
  EXPECT_EQ(check(kCrossEntropy, logits, {0, 4, 1}),
            refusal(kCrossEntropy, logits, classes_of({0, 4, 1})));
  EXPECT_EQ(check(kCrossEntropy, logits, {0, -1, 9}),
            refusal(kCrossEntropy, logits, classes_of({0, -1, 9})));
  EXPECT_THAT(check(kCrossEntropy, logits, {0, 1}), HasSubstr("do not fit"));
  EXPECT_EQ(check(kMse, logits, {7}), "accepted");
}

TEST(CrossEntropy, NamesWhatDoesNotFit) {
  const auto mismatch = [](const at::Tensor& output, const at::Tensor& target) {
    return refusal(kCrossEntropy, output, target);
  };
  EXPECT_THAT(mismatch(logits_of({4, 5}), classes_of({0, 1, 2})),
              AllOf(HasSubstr("float64[4, 5]"), HasSubstr("int64[3]"), HasSubstr("cross_entropy")));
  EXPECT_THAT(mismatch(logits_of({3, 5}), at::zeros({3, 1}, at::kLong)), HasSubstr("int64[3, 1]"));
  EXPECT_THAT(mismatch(logits_of({3, 5}), at::zeros({3})), HasSubstr("float32[3]"));
  EXPECT_THAT(mismatch(logits_of({3, 5}), at::zeros({3}, at::kBool)), HasSubstr("bool"));
  EXPECT_THAT(mismatch(at::zeros({3, 5}, at::kLong), classes_of({0, 1, 2})),
              HasSubstr("int64[3, 5]"));
  EXPECT_THAT(mismatch(at::full({}, 1.0), at::zeros({}, at::kLong)), HasSubstr("do not fit"));
}

TEST(Mse, IsTheMeanOfSquares) {
  const at::Tensor output = at::tensor({1.0, 2.0, 4.0, -1.0}, at::kDouble).view({2, 2});
  const at::Tensor target = at::tensor({1.5, 2.0, 2.0, 1.0}, at::kDouble).view({2, 2});
  EXPECT_EQ(kMse.mean_loss(output, target).value, (0.25 + 0 + 4 + 4) / 4);
  const EvaluatedBatch batch = kMse.evaluate(output, target, 2);
  EXPECT_EQ(batch.loss.item<double>(), 8.25);
  EXPECT_EQ(std::get<double>(batch.elements), 4);
}

TEST(Mse, TakesNumbersOfAnyType) {
  const at::Tensor output = at::tensor({1.0, 5.0}, at::kFloat);
  for (const at::ScalarType dtype : {at::kByte, at::kLong, at::kDouble, at::kHalf}) {
    const at::Tensor loss = kMse.mean_loss(output, at::tensor({2, 3}).to(dtype)).tensor;
    EXPECT_EQ(loss.item<double>(), 2.5);
    EXPECT_EQ(loss.scalar_type(), at::kFloat);
  }
}

TEST(Mse, NamesWhatDoesNotFit) {
  EXPECT_THAT(refusal(kMse, at::zeros({4, 1}), at::zeros({4})),  // would broadcast to [4, 4]
              AllOf(HasSubstr("float32[4, 1]"), HasSubstr("float32[4]"), HasSubstr("mse")));
  EXPECT_THAT(refusal(kMse, at::zeros({4}, at::kLong), at::zeros({4})), HasSubstr("int64[4]"));
  EXPECT_THAT(refusal(kMse, at::zeros({4}), at::zeros({4}, at::kBool)), HasSubstr("bool[4]"));
  EXPECT_THAT(refusal(kMse, at::zeros({4}), at::zeros({4}, at::kComplexFloat)),
              HasSubstr("do not fit"));
}

TEST(CrossEntropy, LearnsNothingWhereAllIsIgnored) {
  const at::Tensor logits = logits_of({2, 3}).requires_grad_();
  EXPECT_EQ(unread(logits, classes_of({-100, -100})), 0.0);
  const at::Tensor loss = kCrossEntropy.mean_loss(logits, classes_of({-100, -100})).tensor;
  EXPECT_EQ(loss.item<double>(), 0.0);
  loss.backward();
  EXPECT_EQ(logits.grad().abs().max().item<double>(), 0.0);
}

TEST(CrossEntropy, FindsTheClassesInAnyDimension) {
  const at::Tensor logits = logits_of({2, 5, 3, 4});
  const at::Tensor classes = at::arange(24, at::kLong).remainder(5).view({2, 3, 4});
  const double last = kCrossEntropy.mean_loss(logits.movedim(1, -1).contiguous(), classes).value;
  for (std::int64_t dim : {1, -3}) {
    const Criterion criterion("cross_entropy", {.class_dim = dim});
    EXPECT_EQ(criterion.mean_loss(logits, classes).value, last);
  }
  EXPECT_THAT(refusal(Criterion("cross_entropy", {.class_dim = 4}), logits, classes),
              AllOf(HasSubstr("dimension 4"), HasSubstr("model.class_dim")));
}

TEST(OwnLoss, IsTheModelsOutput) {
  const Criterion own("output");
  EXPECT_FALSE(own.needs_target());
  EXPECT_EQ(own.mean_loss(at::full({1, 1}, 2.5), {}).value, 2.5);
  const EvaluatedBatch batch = own.evaluate(at::full({}, 2.5), {}, 8);
  EXPECT_EQ(batch.loss.item<double>(), 8 * 2.5);
  EXPECT_EQ(std::get<double>(batch.elements), 8);
  EXPECT_THROW(own.mean_loss(at::zeros({2}), {}), UserError);
  EXPECT_THROW(own.mean_loss(at::zeros({}, at::kLong), {}), UserError);
}

}  // namespace
}  // namespace decent
