#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/modules.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Saved;

class Forward : public ::testing::Test {
 protected:
  Forward() { use_plain_executor(); }

  static at::Tensor run(const std::string& forward, const std::vector<ForwardInput>& inputs,
                        const std::vector<at::Tensor>& tensors) {
    return Saved(testing::module_with(forward)).load().forward(inputs, tensors);
  }
  static std::string failure(const std::string& forward, const at::Tensor& x, int lines = 1) {
    const std::string text = testing::refusal([&] {
      run("def forward(self, x):\n" + forward, {{"", "image"}}, {x});
    });
    EXPECT_EQ(testing::lines_of(text), lines) << text;
    EXPECT_LT(text.size(), 400U) << text;
    return text;
  }
};

TEST_F(Forward, GivesWhatTheModelComputes) {
  Model model = Saved(testing::small_module()).load();
  const at::Tensor x = testing::weight({5, 4}).detach();
  const std::vector<ForwardInput> inputs = {{"", "x"}};
  const at::Tensor y = model.forward(inputs, std::vector{x});
  const at::Tensor h = at::linear(x, testing::weight({3, 4}), testing::weight({3})).tanh();
  // The same operators on the same values.
  EXPECT_TRUE(at::equal(y, at::linear(h, testing::weight({2, 3})).mul(2)));
  y.sum().backward();
  EXPECT_TRUE(model.parameters()[0].second.grad().defined());
}

TEST_F(Forward, FeedsByOrderAndByName) {
  const std::string source = "def forward(self, a, b):\n    return a - b + 0 * self.w.sum()\n";
  const at::Tensor one = at::full({2}, 1.0F), three = at::full({2}, 3.0F);
  EXPECT_TRUE(at::equal(run(source, {{"", "p"}, {"", "q"}}, {one, three}), at::full({2}, -2.0F)));
  EXPECT_TRUE(at::equal(run(source, {{"b", "p"}, {"a", "q"}}, {one, three}), at::full({2}, 2.0F)));
}

TEST_F(Forward, FailsInOneLineWithTheShapes) {
  EXPECT_THAT(failure("    return torch.linear(x, self.w)\n", at::zeros({8, 5})),
              AllOf(HasSubstr("image float32[8, 5]"), HasSubstr("mat1 and mat2")));
}

TEST_F(Forward, SaysHowToStoreDataOfAnotherType) {
  EXPECT_THAT(failure("    return torch.linear(x, self.w)\n", at::zeros({8, 4}, at::kLong), 2),
              AllOf(HasSubstr("image int64[8, 4]"),
                    HasSubstr("\nField 'image' is int64 (the model wants float32). Store it in the "
                              "data file as image.astype('float32')")));
}

TEST_F(Forward, GivesTheModelsOwnReason) {
  EXPECT_THAT(
      failure("    assert x.dim() == 3, \"wants sequences\"\n    return x\n", at::zeros({8, 5})),
      HasSubstr("wants sequences"));
}

TEST_F(Forward, WantsOneTensor) {
  EXPECT_THAT(failure("    return x, x\n", at::zeros({2})),
              AllOf(HasSubstr("2 outputs"), HasSubstr("model.output chooses one: 0, 1")));
  EXPECT_EQ(failure("    return {\"logits\": x}\n", at::zeros({2})), "accepted");
  EXPECT_THAT(failure("    return x.dim()\n", at::zeros({2})), HasSubstr("int"));
}

TEST_F(Forward, FollowsTrainAndEval) {
  Model model =
      Saved(testing::module_with(
                "def forward(self, x):\n    return torch.dropout(x, 0.5, self.training)\n"))
          .load();
  const std::vector<ForwardInput> inputs = {{"", "x"}};
  const std::vector<at::Tensor> x = {at::ones({1000})};
  model.module().train();
  EXPECT_FALSE(at::equal(model.forward(inputs, x), x[0]));
  model.module().eval();
  EXPECT_TRUE(at::equal(model.forward(inputs, x), x[0]));
}

}  // namespace
}  // namespace decent
