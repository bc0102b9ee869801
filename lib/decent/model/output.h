#pragma once
// Selects one tensor from the result of a model's forward.

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

namespace decent {

/// Picks `choice`, a name or an index (from 0), from `result`: a tensor, a tuple (named or not), a
/// list or a dictionary of tensors. Without a choice, takes the only tensor. Throws UserError that
/// lists the outputs.
at::Tensor select_output(const c10::IValue& result, const std::optional<std::string>& choice);

}  // namespace decent
