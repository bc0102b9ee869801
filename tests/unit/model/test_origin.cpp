// What a model asks the format of its file, with a format that is made up.

#include <ATen/ops/allclose.h>
#include <ATen/ops/linear.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/modules.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Module;
using testing::TemporaryFolder;

// Its file calls forward's x "pixels" and declares 4 numbers a sample.
class MadeUpOrigin final : public ModelOrigin {
 public:
  std::string nothing_trainable(std::size_t parameters) const override {
    return "trains none of " + std::to_string(parameters);
  }
  std::string argument_of(const std::string& name) const override {
    return name == "pixels" ? "x" : name;
  }
  std::optional<LayoutMismatch> input_mismatch(const FedInput& input) const override {
    if (input.batch.back() == 4) return std::nullopt;
    return LayoutMismatch{"field '" + input.field + "' is not of 4 numbers", "export it anew"};
  }
  std::string batch_advice(std::int64_t samples) const override {
    return "\nnot for " + std::to_string(samples) + " samples";
  }
  void write_back(const Model& model, const std::filesystem::path& path,
                  const FileExtras& /*extras*/) const override {
    write_file(path, model.state().front().first);
  }
};

Model made_up(const Module& module, const std::string& logits_switch = "") {
  return {"model.onnx",
          {.module = module,
           .origin = std::make_shared<const MadeUpOrigin>(),
           .output = std::nullopt,
           .logits_switch = logits_switch}};
}

TEST(Origin, KnowsInputsByNamesOfItsOwn) {
  Model model = made_up(testing::module_with("def forward(self, x):\n    return x @ self.w.t()\n"));
  const std::vector<ForwardInput> inputs = {{"pixels", "image"}};
  EXPECT_NO_THROW(model.check_signature(inputs));
  const at::Tensor x = testing::weight({2, 4}).detach();
  EXPECT_TRUE(at::allclose(model.forward(inputs, std::vector{x}),
                           at::linear(x, model.parameters().front().second)));
}

TEST(Origin, SaysWhyABatchFails) {
  Model model = made_up(testing::module_with("def forward(self, x):\n    return x @ self.w\n"));
  const auto failure = [&](at::IntArrayRef sizes) {
    return testing::refusal([&] {
      model.forward(std::vector<ForwardInput>{{"", "image"}},
                    std::vector{testing::weight(sizes).detach()});
    });
  };
  EXPECT_THAT(
      failure({2, 5}),
      AllOf(HasSubstr("model 'model.onnx' does not fit the data: field 'image' is not of 4"),
            HasSubstr(".\nexport it anew.\nIt failed with: ")));
  EXPECT_THAT(failure({2, 4}), AllOf(HasSubstr("fails on a batch of image float32[2, 4]"),
                                     HasSubstr("\nnot for 2 samples")));
}

TEST(Origin, SaysWhyNothingTrains) {
  Module module = testing::small_module();
  for (const at::Tensor& parameter : module.parameters()) parameter.set_requires_grad(false);
  EXPECT_EQ(testing::refusal([&] { made_up(module).check_trainable(); }),
            "model 'model.onnx' trains none of 3");
}

TEST(Origin, HasASwitchForLogits) {
  Module module = testing::plain_module();
  module.register_parameter("w", testing::weight({3, 4}), false);
  module.register_attribute("raw", c10::BoolType::get(), false);
  module.define(
      "def forward(self, x):\n"
      "    y = torch.linear(x, self.w)\n"
      "    if self.raw:\n"
      "        return y\n"
      "    return torch.softmax(y, -1)\n");
  Model model = made_up(module, "raw");
  const std::vector<ForwardInput> inputs = {{"", "x"}};
  const std::vector tensors = {testing::weight({2, 4}).detach()};
  ASSERT_TRUE(model.gives_logits());
  const at::Tensor logits = model.forward(inputs, tensors);
  EXPECT_TRUE(at::allclose(logits, at::linear(tensors[0], module.attr("w").toTensor())));
  EXPECT_FALSE(module.attr("raw").toBool());  // what is saved gives what the file does
  model.give_logits(false);
  EXPECT_TRUE(at::allclose(model.forward(inputs, tensors), logits.softmax(-1)));
}

TEST(Origin, WritesTheFileBack) {
  Model model = made_up(testing::small_module());
  const TemporaryFolder folder;
  write_model(model, folder / "out.onnx");
  EXPECT_EQ(read_text(folder / "out.onnx"), "w");
}

}  // namespace
}  // namespace decent
