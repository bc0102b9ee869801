#pragma once
// Checks that the program exports no model whose numbers have become infinite or NaN.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// Elements of buffers and frozen parameters may be infinite or NaN if they are so in the model's
/// file, such as masks of -inf.
class FiniteCheck {
 public:
  /// `model` is as it was opened: no checkpoint was loaded into it and no step trained.
  explicit FiniteCheck(const Model& model);

  /// The tensors of the same model that now have infinite or NaN elements but should not:
  /// "parameter 'fc.weight' (3 of its 512 values), buffer 'norm.running_var' (1 of its 10 values)";
  /// nullopt if there are none. Names at most three.
  std::optional<std::string> find_lost(const Model& model) const;

  /// Throws Error, ExitCode::diverged, if find_lost() finds something in the model after step
  /// `step`: the last update may have done damage that no loss has shown.
  void check_trained(const Model& model, std::int64_t step) const;

 private:
  std::map<std::string, at::Tensor>
      allowed_;  // by the tensor's name: true where an element may be infinite or NaN
};

}  // namespace decent
