#pragma once
// Advice if the shapes that a model's file declares do not fit the layout of the data.

#include <string>
#include <vector>

#include "decent/task/task.h"

namespace decent {

/// Two lines for each misfit: what does not fit and what to do. About the inputs, or, if these fit,
/// about the output. None if the file declares no shapes. The model may run nevertheless, but not
/// as it was meant.
std::vector<std::string> layout_advice(const Task& task);

}  // namespace decent
