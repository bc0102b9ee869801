// TorchScript methods that modules of ONNX files get: every one compiles, with what it calls.

#include <gtest/gtest.h>

#include "decent/model/onnx_module.h"
#include "decent/onnx/translate/helpers.h"

namespace decent {
namespace {

torch::jit::Module module_of(const std::string& methods) {
  onnx::ModuleSource source;
  source.methods = methods + "def forward(self) -> int:\n    return 0\n";
  return make_module(source);
}

TEST(OnnxHelpers, CompileEachByItself) {
  std::size_t compiled = 0;
  for (const std::string& name : onnx::all_helper_names()) {
    try {
      const torch::jit::Module module = module_of(onnx::helper_methods({name}));
      EXPECT_TRUE(module.find_method(name)) << name;
      ++compiled;
    } catch (const c10::Error& error) {
      ADD_FAILURE() << name << ": " << error.what_without_backtrace();
    }
  }
  EXPECT_GT(compiled, 90U);
}

TEST(OnnxHelpers, OneThatDoesNotCompileIsNoticed) {
  const std::string broken =
      "def _broken(self, x: Tensor) -> Tensor:\n    return self._missing(x)\n";
  EXPECT_THROW(module_of(broken), c10::Error);
}

}  // namespace
}  // namespace decent
