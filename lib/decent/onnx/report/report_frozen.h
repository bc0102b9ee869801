#pragma once
// The part of the report about tensors that do not train but may be weights.

#include <string>
#include <vector>

#include "decent/onnx/graph/uses.h"
#include "decent/onnx/report/report.h"
#include "decent/onnx/report/report_tensors.h"

namespace decent::onnx {

/// First come all tensors that look like weights: tensors of two or more dimensions that go into
/// the weight of a MatMul, Gemm, convolution or the like, perhaps after a computation with other
/// constants (including buffers of the exported model), or that are named like a parameter. In
/// brief, tensors whose names differ only in numbers share a line. Then come tables that are added
/// to data or multiply it, vectors and single numbers, the largest first; in brief, only some of
/// them.
std::vector<std::string> frozen_lines(const std::vector<ReportedTensor>& all, const Uses& uses,
                                      Detail detail);

/// One line for the start of a run, with some of their names; "" if there are none.
std::string frozen_note(const std::vector<ReportedTensor>& all, const Uses& uses);

}  // namespace decent::onnx
