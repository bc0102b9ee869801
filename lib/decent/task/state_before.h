#pragma once
// What a model was before it ran for another purpose than training: a trial, an evaluation.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "decent/model/model.h"

namespace decent {

/// Keeps what forward writes: buffers, and those parameters that forward may write into, too. A
/// copy of all parameters would double the memory of a large model.
class StateBefore {
 public:
  explicit StateBefore(const Model& model) {
    for (const auto* tensors : {&model.buffers(), &model.written_parameters()}) {
      for (const auto& [name, tensor] : *tensors)
        saved_.emplace_back(tensor, tensor.detach().clone());
    }
  }

  /// Not after a failure of a GPU, of which nothing may be asked then.
  void restore() const {
    const at::NoGradGuard no_grad;
    for (const auto& [tensor, before] : saved_) tensor.copy_(before);
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;
};

}  // namespace decent
