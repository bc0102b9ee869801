#pragma once
// That no model leaves the program in which numbers have been lost.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "decent/model/model.h"

namespace decent {

/// Elements that a model may have as infinities or NaN are those of buffers and frozen parameters
/// that are so in its file, such as masks of -inf.
class FiniteCheck {
 public:
  /// `model` is as it was opened: no checkpoint was loaded into it and no step trained.
  explicit FiniteCheck(const Model& model);

  /// What of the same model, as it is now, is not finite and ought to be: "parameter 'fc.weight' (3
  /// of its 512 values), buffer 'norm.running_var' (1 of its 10 values)"; nothing where all is
  /// well. Names at most three.
  std::optional<std::string> find_lost(const Model& model) const;

  /// Throws Error, ExitCode::diverged, where the model after training, at that step, has lost
  /// numbers: the last update may have lost some that no loss has shown.
  void check_trained(const Model& model, std::int64_t step) const;

 private:
  std::map<std::string, at::Tensor>
      allowed_;  // by what a tensor is called: true where it may be so
};

}  // namespace decent
