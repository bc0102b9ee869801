// What of a model depends on the device that it is on, as far as it shows without another one.

#include <ATen/autocast_mode.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include <stdexcept>

#include "../support/modules.h"
#include "decent/model/advice.h"
#include "decent/model/constants.h"
#include "decent/model/forward_graph.h"
#include "decent/model/inspect.h"
#include "decent/model/precision.h"
#include "decent/model/reason.h"
#include "decent/model/torchscript/save.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Module;
using testing::module_with;
using ::testing::Not;
using testing::Saved;

const at::Device kGpu(at::kCUDA, 0);

// Tensors that are made of none: on the CPU unless forward says otherwise.
Module module_with_tensors_of_its_own(const std::string& device) {
  return module_with(
      "def forward(self, x):\n"
      "    a = torch.arange(3" +
      device + ") + torch.arange(3" + device +
      ")\n"
      "    return torch.linear(x, self.w) + a + torch.zeros([3]" +
      device + ")\n");
}

std::vector<std::string> cpu_operators(const Module& module) {
  return find_cpu_operators(*forward_graph(module));
}

TEST(ReasonOf, SaysWhatIsWrongOnAGpu) {
  const std::string text =
      "The following operation failed in the TorchScript interpreter.\n"
      "Traceback of TorchScript (most recent call last):\n"
      "RuntimeError: CUDA error: device-side assert triggered\n"
      "CUDA kernel errors might be asynchronously reported at some other API call\n"
      "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n";
  EXPECT_EQ(reason_of(std::runtime_error(text)), "CUDA error: device-side assert triggered");
  EXPECT_EQ(reason_of(std::runtime_error("CUDA error: out of order")), "CUDA error: out of order");
}

// What LibTorch says where it has no CUDA goes on for many lines.
TEST(ReasonOf, IsTheFirstLineBehindTheTraceback) {
  const std::string text =
      "The following operation failed in the TorchScript interpreter.\n"
      "Traceback of TorchScript, serialized code (most recent call last):\n"
      "  File \"code/__torch__.py\", line 8, in forward\n"
      "    return torch.zeros([3], device=torch.device(\"cuda:0\"))\n"
      "           ~~~~~~~~~~~ <--- HERE\n\n"
      "RuntimeError: Could not run 'aten::empty.memory_format' with arguments from the 'CUDA' "
      "backend.\n\n"
      "CPU: registered at RegisterCPU.cpp:30 [kernel]\n"
      "PythonDispatcher: registered at PythonFallbackKernel.cpp:202 [backend fallback]\n";
  EXPECT_EQ(reason_of(std::runtime_error(text)),
            "RuntimeError: Could not run 'aten::empty.memory_format' with arguments from the "
            "'CUDA' backend.");
}

// torch.linear(x, w) times a tensor that is written into the code, as torch.jit.trace does.
Module module_with_constant(const at::Tensor& constant) {
  const Module module = module_with("def forward(self, x):\n    return torch.linear(x, self.w)\n");
  const auto graph = module.get_method("forward").graph();
  const torch::jit::WithInsertPoint before_return(graph->return_node());
  torch::jit::Value* factor = graph->insertConstant(constant);
  torch::jit::Value* product = graph->insert(c10::aten::mul, {graph->outputs()[0], factor});
  graph->return_node()->replaceInput(0, product);
  return module;
}

TEST(CpuOperators, AreThoseThatFollowNoInput) {
  EXPECT_THAT(cpu_operators(module_with_tensors_of_its_own("")),
              ElementsAre("2 x arange", "1 x zeros"));
  EXPECT_THAT(cpu_operators(module_with_tensors_of_its_own(", device='cpu'")),
              ElementsAre("2 x arange", "1 x zeros"));
  EXPECT_THAT(cpu_operators(module_with_tensors_of_its_own(", device=x.device")), IsEmpty());
  EXPECT_THAT(cpu_operators(module_with("def forward(self, x):\n"
                                        "    return torch.linear(x, self.w).cpu()\n")),
              ElementsAre("1 x cpu"));
  EXPECT_THAT(cpu_operators(testing::small_module()), IsEmpty());
}

TEST(DeviceAdvice, NamesWhatTheModelMakesOnTheCpu) {
  const Module module = module_with_tensors_of_its_own("");
  const std::string reason =
      "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and "
      "cpu!";
  const std::string advice = device_advice(reason, module, kGpu);
  EXPECT_THAT(advice, AllOf(HasSubstr("2 x arange, 1 x zeros"), HasSubstr("device=x.device"),
                            HasSubstr("model.device: cpu")));
  EXPECT_LE(testing::lines_of(reason + advice), 5);
  EXPECT_EQ(device_advice(reason, module, at::kCPU), "");
  EXPECT_EQ(device_advice("shapes do not fit", module, kGpu), "");
  EXPECT_THAT(device_advice(reason, testing::small_module(), kGpu),
              AllOf(HasSubstr("on the CPU"), Not(HasSubstr("()"))));
}

TEST(GpuOperators, AreThoseThatAreToldAGpu) {
  const auto found = [](const std::string& device) {
    return find_gpu_operators(*forward_graph(module_with_tensors_of_its_own(device)));
  };
  EXPECT_THAT(found(", device='cuda'"), ElementsAre("2 x arange", "1 x zeros"));
  EXPECT_THAT(found(", device=torch.device('cuda:0')"), ElementsAre("2 x arange", "1 x zeros"));
  EXPECT_THAT(found(", device=x.device"), IsEmpty());
  EXPECT_THAT(found(""), IsEmpty());
}

TEST(GpuWish, IsToldInPlaceOfLibTorchsReason) {
  const Module module = module_with_tensors_of_its_own(", device='cuda'");
  const std::string reason = "Could not run 'aten::arange' with arguments from the 'CUDA' backend";
  EXPECT_THAT(gpu_wish(reason, module, at::kCPU).value_or(""),
              AllOf(HasSubstr("on a GPU (2 x arange, 1 x zeros)"), HasSubstr("device=x.device"),
                    HasSubstr("model.device: cuda")));
  EXPECT_EQ(gpu_wish(reason, module, kGpu), std::nullopt);
  EXPECT_EQ(gpu_wish("shapes do not fit", module, at::kCPU), std::nullopt);
}

TEST(Model, KnowsTheConstantsOfForward) {
  EXPECT_THAT(constants_to_move(*forward_graph(testing::small_module())), IsEmpty());
  const Saved saved(module_with_constant(at::full({3}, 2.0F)));
  Model model = saved.load();
  ASSERT_EQ(model.constants().size(), 1U);
  EXPECT_TRUE(at::equal(model.constants()[0], at::full({3}, 2.0F)));
}

// What move_to() relies on: set_data reaches the code that runs, and what is saved of it.
TEST(Model, RunsWithItsConstantsMemory) {
  const Saved saved(module_with_constant(at::full({3}, 2.0F)));
  Model model = saved.load();
  const std::vector<ForwardInput> inputs = {{"", "x"}};
  const std::vector<at::Tensor> x = {at::full({1, 4}, 1.0F)};
  const at::Tensor twice = model.forward(inputs, x);
  at::Tensor constant = model.constants()[0];
  constant.set_data(at::full({3}, 4.0F));
  EXPECT_TRUE(at::equal(model.forward(inputs, x), twice.mul(2)));
  const testing::TemporaryFolder folder;
  save_torchscript(model, folder / "model.pt");
  EXPECT_TRUE(at::equal(open_model(folder / "model.pt").forward(inputs, x), twice.mul(2)));
}

TEST(Model, IsOnTheCpuUntilItIsMoved) {
  Model model = Saved(testing::small_module()).load();
  EXPECT_TRUE(model.device().is_cpu());
  const at::Tensor weight = model.parameters()[0].second;
  const void* memory = weight.const_data_ptr();
  model.move_to(at::kCPU);
  EXPECT_EQ(weight.const_data_ptr(), memory);
  EXPECT_TRUE(weight.requires_grad() && weight.is_leaf());
}

TEST(Autocast, IsOfOneKindOfDevice) {
  for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
    const at::DeviceType other = device == at::kCPU ? at::kCUDA : at::kCPU;
    const at::ScalarType before = at::autocast::get_autocast_dtype(device);
    {
      const Autocast autocast(device, at::kHalf);
      EXPECT_TRUE(at::autocast::is_autocast_enabled(device));
      EXPECT_FALSE(at::autocast::is_autocast_enabled(other));
      EXPECT_EQ(at::autocast::get_autocast_dtype(device), at::kHalf);
    }
    EXPECT_FALSE(at::autocast::is_autocast_enabled(device));
    EXPECT_EQ(at::autocast::get_autocast_dtype(device), before);
  }
}

}  // namespace
}  // namespace decent
