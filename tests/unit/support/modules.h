#pragma once
// TorchScript modules made in memory, and files of them.

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <string>

#include "decent/model/formats.h"
#include "decent/model/model.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace decent::testing {

using torch::jit::Module;

/// A module with a `training` switch, as torch.jit.script makes them.
inline Module plain_module(const std::string& name = "Net") {
  Module module("__torch__." + name);
  module.register_attribute("training", c10::BoolType::get(), true);
  return module;
}

inline at::Tensor weight(at::IntArrayRef sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return at::arange(n, at::kFloat).mul_(0.37).sin_().view(sizes).requires_grad_();
}

/// x W' + b, then a layer that is scaled by a buffer. Registered: w, inner.v, b; buffers: scale,
/// count.
inline Module small_module() {
  Module inner = plain_module("Inner");
  inner.register_parameter("v", weight({2, 3}), false);
  inner.define("def forward(self, x):\n    return torch.linear(x, self.v)\n");
  Module module = plain_module();
  module.register_parameter("w", weight({3, 4}), false);
  module.register_module("inner", inner);
  module.register_parameter("b", weight({3}), false);
  module.register_buffer("scale", at::full({}, 2.0F));
  module.register_buffer("count", at::full({2}, 7, at::kLong));
  module.define(
      "def forward(self, x):\n"
      "    h = torch.tanh(torch.linear(x, self.w, self.b))\n"
      "    return self.inner.forward(h) * self.scale\n");
  return module;
}

/// A module with the parameter w [3, 4] and the source `forward`.
inline Module module_with(const std::string& forward) {
  Module module = plain_module();
  module.register_parameter("w", weight({3, 4}), false);
  module.define(forward);
  return module;
}

/// Saves a module to a file of its own, and loads the file.
class Saved {
 public:
  explicit Saved(const Module& module) : path_(folder_ / "model.pt") {
    module.save(path_.string());
  }
  const std::filesystem::path& path() const { return path_; }
  Model load() const { return open_model(path_); }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_;
};

inline std::int64_t lines_of(const std::string& text) {
  return 1 + std::count(text.begin(), text.end(), '\n');
}

}  // namespace decent::testing
