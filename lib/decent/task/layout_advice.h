#pragma once
// Where the shapes that a model's file declares say that the data are laid out otherwise.

#include <string>
#include <vector>

#include "decent/task/task.h"

namespace decent {

/// What does not fit and what to do, two lines each: of the inputs, or, where these fit, of the
/// output. None where the file declares none. The model may run all the same, and not as it was
/// meant.
std::vector<std::string> layout_advice(const Task& task);

}  // namespace decent
