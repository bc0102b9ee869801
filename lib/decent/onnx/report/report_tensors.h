#pragma once
// How the report names tensors of a file.

#include <string>
#include <vector>

#include "decent/onnx/classify/classify.h"

namespace decent::onnx {

struct ReportedTensor {
  const Tensor* tensor = nullptr;
  const Classified* classified = nullptr;
  std::string note = {};  // after the reason; or empty
};

/// "  conv1.weight ('w_3' in the file) float32[16, 1, 3, 3]: weight of Conv".
std::string tensor_line(const ReportedTensor& reported);

/// One line for all tensors of one type, shape and reason whose names differ only in numbers, in
/// the order of their first tensors: "  12 x layers.*.scale float32[64, 64]: added or multiplied:
/// ..". The name is a glob that model.unfreeze takes.
std::vector<std::string> grouped_lines(const std::vector<ReportedTensor>& tensors);

}  // namespace decent::onnx
