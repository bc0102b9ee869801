#pragma once
// What the program understood of a model file that it had to translate.

#include <string>
#include <vector>

#include "decent/task/task.h"

namespace decent {

/// Lines about an .onnx file: about 20 of them, or, where `full`, one for each tensor too. Nothing
/// for a TorchScript file, which is taken as it is.
std::vector<std::string> model_report(const Task& task, bool full);

}  // namespace decent
