// Models that put new tensors in the place of their buffers.

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "../support/modules.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Module;
using testing::Saved;

at::Tensor filled(float value) { return at::full({2}, value); }

// A submodule with the buffers `cur` = 1 and `prev` = 0, in this order, whose forward begins with
// `body`.
Module module_with_buffers(const std::string& body) {
  Module inner = testing::plain_module("Inner");
  inner.register_buffer("cur", filled(1));
  inner.register_buffer("prev", filled(0));
  inner.define("def forward(self, x):\n" + body + "    return x\n");
  Module module = testing::plain_module();
  module.register_parameter("w", testing::weight({2}), false);
  module.register_module("inner", inner);
  module.define("def forward(self, x):\n    return self.inner.forward(x) * self.w\n");
  return module;
}

class SettleBuffers : public ::testing::Test {
 protected:
  void run(const std::string& body) {
    model_ = std::make_unique<Model>(Saved(module_with_buffers(body)).load());
    use_plain_executor();
    const std::vector<ForwardInput> inputs = {{"", "x"}};
    model_->forward(inputs, std::vector<at::Tensor>{at::ones({2})}).sum().backward();
    model_->settle_buffers();
  }
  // The buffer that the wrapper knows, which must be the one in the module.
  at::Tensor buffer(std::size_t number, const std::string& name) {
    const at::Tensor known = model_->buffers().at(number).second;
    EXPECT_TRUE(known.is_same(model_->module().attr("inner").toModule().attr(name).toTensor()));
    return known;
  }
  std::unique_ptr<Model> model_;
};

TEST_F(SettleBuffers, KeepsBuffersThatAreWrittenInPlace) {
  run("    self.cur += 4\n");
  EXPECT_TRUE(at::equal(buffer(0, "cur"), filled(5)));
}

TEST_F(SettleBuffers, TakesTheValuesOfNewTensors) {
  run("    self.cur = 0.5 * self.cur + 3 * x\n");
  EXPECT_TRUE(at::equal(buffer(0, "cur"), filled(3.5)));
  EXPECT_TRUE(at::equal(buffer(1, "prev"), filled(0)));
}

// One buffer's tensor in the place of another: every value is taken before any is overwritten.
TEST_F(SettleBuffers, LetsBuffersMoveOn) {
  run("    self.prev = self.cur\n    self.cur = 7 * x\n");
  EXPECT_TRUE(at::equal(buffer(0, "cur"), filled(7)));
  EXPECT_TRUE(at::equal(buffer(1, "prev"), filled(1)));
}

TEST_F(SettleBuffers, LetsBuffersChangePlaces) {
  run("    other = self.prev\n    self.prev = self.cur\n    self.cur = other\n");
  EXPECT_TRUE(at::equal(buffer(0, "cur"), filled(0)));
  EXPECT_TRUE(at::equal(buffer(1, "prev"), filled(1)));
}

TEST_F(SettleBuffers, RefusesAnotherShapeOrType) {
  EXPECT_THAT(testing::refusal([&] { run("    self.cur = torch.cat([self.cur, x])\n"); }),
              AllOf(HasSubstr("'inner.cur'"), HasSubstr("float32[2]")));
  EXPECT_THAT(testing::refusal([&] { run("    self.prev = self.prev.double()\n"); }),
              HasSubstr("'inner.prev'"));
}

// Of a module with the parameters w and other.
std::vector<std::string> written_parameters(const std::string& body) {
  testing::Module module = testing::module_with("def unused(self, x):\n    return x\n");
  module.register_parameter("other", testing::weight({3}), false);
  module.define("def forward(self, x):\n" + body);
  const Model model = Saved(module).load();
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.written_parameters()) names.push_back(name);
  return names;
}

TEST(WrittenParameters, AreThoseThatForwardWritesInto) {
  EXPECT_THAT(written_parameters("    self.w.mul_(2)\n    return torch.linear(x, self.w)\n"),
              ElementsAre("w"));
  EXPECT_THAT(written_parameters("    self.w.data[0].view([4]).fill_(1)\n    return x\n"),
              ElementsAre("w"));
  EXPECT_THAT(written_parameters("    w = self.w if self.training else x\n"
                                 "    for i in range(3):\n        w = w.detach().mul_(2)\n"
                                 "    return w\n"),
              ElementsAre("w"));
  EXPECT_THAT(written_parameters("    for each in [self.w, self.other]:\n"
                                 "        each.detach().zero_()\n    return x\n"),
              ElementsAre("w", "other"));
}

TEST(WrittenParameters, AreNotThoseWhoseCopiesItWrites) {
  EXPECT_THAT(written_parameters("    y = torch.linear(x, self.w)\n    y.add_(self.other)\n"
                                 "    self.w.clone().zero_()\n    x.mul_(2)\n    return y\n"),
              ::testing::IsEmpty());
}

TEST(ReadsDataOfTensors, SeesIt) {
  const auto reads = [](const std::string& body) {
    return Saved(testing::module_with("def forward(self, x):\n    return " + body + "\n"))
        .load()
        .reads_data_of_tensors();
  };
  EXPECT_TRUE(reads("torch.linear(x, self.w.data)"));
  EXPECT_FALSE(reads("torch.linear(x, self.w.detach())"));
}

}  // namespace
}  // namespace decent
