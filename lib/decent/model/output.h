#pragma once
// One tensor out of what a model's forward returns.

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

namespace decent {

/// Picks `choice`, a name or an index (from 0), from `result`: a tensor, a tuple (named or not), a
/// list or a dictionary of tensors. Without a choice the only one there is. Throws UserError
/// listing what there is.
at::Tensor select_output(const c10::IValue& result, const std::optional<std::string>& choice);

}  // namespace decent
