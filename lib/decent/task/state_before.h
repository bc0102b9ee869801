#pragma once
// The state of a model before it runs for another purpose than training: a trial, an evaluation.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "decent/model/model.h"

namespace decent {

/// Keeps the tensors that forward writes: buffers, and parameters that forward may write into. A
/// copy of all parameters would double the memory of a large model.
class StateBefore {
 public:
  explicit StateBefore(const Model& model) {
    for (const auto* tensors : {&model.buffers(), &model.written_parameters()}) {
      for (const auto& [name, tensor] : *tensors)
        saved_.emplace_back(tensor, tensor.detach().clone());
    }
  }

  /// Do not call it after a failure of a GPU, which then accepts no work.
  void restore() const {
    const at::NoGradGuard no_grad;
    for (const auto& [tensor, before] : saved_) tensor.copy_(before);
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;
};

}  // namespace decent
