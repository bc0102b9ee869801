// The check of an export compares two models under one set of conditions, which on a GPU decide
// what cuDNN computes. Those can be looked at without one.

#include "decent/train/export_check.h"

#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/digits.h"
#include "decent/model/precision.h"

namespace decent {
namespace {

using testing::digits_recipe;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool fast_math_is_on() {
  const at::Context& context = at::globalContext();
  return context.allowTF32CuBLAS() || context.allowTF32CuDNN() || context.benchmarkCuDNN();
}

struct Convolution {
  bool fast;
  std::vector<std::int64_t> weight_strides;
};

// What was convolved while one of these lives, on this thread.
class Convolutions {
 public:
  Convolutions() {
    seen.clear();
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Convolutions::see).needsInputs(true));
  }
  ~Convolutions() { at::removeCallback(handle_); }

  static std::vector<Convolution> seen;

 private:
  static std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
    if (std::string_view(function.name()) != "aten::conv2d") return nullptr;
    const at::Tensor weight = function.inputs()[1].toTensor();
    seen.push_back({.fast = fast_math_is_on(), .weight_strides = weight.strides().vec()});
    return nullptr;
  }

  at::CallbackHandle handle_;
};
std::vector<Convolution> Convolutions::seen;

// A TorchScript file is opened again as the formats are that an export writes back.
std::vector<Convolution> compared(const Recipe& recipe) {
  Task task = open_task(recipe, {}, Purpose::training);
  const Convolutions convolutions;
  EXPECT_THAT(check_export(task, recipe.model.path), HasSubstr("come out the same"));
  return Convolutions::seen;
}

TEST(ExportCheck, ComparesWithoutFastMath) {
  Recipe recipe = digits_recipe("digits_cnn.pt");
  recipe.model.fast_math = true;
  const auto convolutions = compared(recipe);
  EXPECT_THAT(convolutions, Not(IsEmpty()));
  EXPECT_THAT(convolutions, Each(Field(&Convolution::fast, false)));
  EXPECT_TRUE(fast_math_is_on());  // as it was
  set_fast_math(false);
}

TEST(ExportCheck, OpensTheFileInTheModelsMemoryFormat) {
  Recipe recipe = digits_recipe("digits_cnn.pt");
  const auto contiguous = compared(recipe);
  recipe.model.memory_format = MemoryFormat::channels_last;
  const auto last = compared(recipe);
  ASSERT_EQ(last.size(), contiguous.size());
  const std::size_t half = last.size() / 2;  // of the model in memory, then of the file
  for (std::size_t i = 0; i < half; ++i)
    EXPECT_EQ(last[i].weight_strides, last[half + i].weight_strides);
  EXPECT_NE(last.back().weight_strides, contiguous.back().weight_strides);
}

TEST(ExportCheck, TellsOfAnotherModel) {
  const Recipe recipe = digits_recipe("digits_cnn.pt");
  Task task = open_task(recipe, {}, Purpose::training);
  task.model->parameters().front().second.detach().mul_(1.001);
  EXPECT_THROW(check_export(task, recipe.model.path), std::logic_error);
}

}  // namespace
}  // namespace decent
