#pragma once
// The part of the report that tells of tensors which do not train, though they may be weights.

#include <string>
#include <vector>

#include "decent/onnx/graph/uses.h"
#include "decent/onnx/report/report.h"
#include "decent/onnx/report/report_tensors.h"

namespace decent::onnx {

/// First all that look like weights: matrices and larger that go into the weight of a MatMul, Gemm,
/// convolution or the like, perhaps after a computation with other constants (what the exported
/// model calls a buffer, too), or that are named like a parameter. In brief those whose names
/// differ in numbers alone are one line. Then tables that data is added to or multiplied with,
/// vectors and single numbers, the largest first; in brief only some of them.
std::vector<std::string> frozen_lines(const std::vector<ReportedTensor>& all, const Uses& uses,
                                      Detail detail);

/// One line for the start of a run, with some of their names; "" where there are none.
std::string frozen_note(const std::vector<ReportedTensor>& all, const Uses& uses);

}  // namespace decent::onnx
