#pragma once
// How the report names tensors of a file, and its part about those that do not train but may be
// weights.

#include <cstddef>
#include <string>
#include <vector>

#include "decent/onnx/classify/classify.h"
#include "decent/onnx/graph/uses.h"
#include "decent/onnx/report/report.h"

namespace decent::onnx {

/// The number of names in a line of the short report.
inline constexpr std::size_t kNamesInBrief = 3;

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

/// The tensors that do not train. First come all tensors that look like weights: tensors of two or
/// more dimensions that go into the weight of a MatMul, Gemm, convolution or the like, perhaps
/// after a computation with other constants (including buffers of the exported model), or that are
/// named like a parameter. In brief, tensors whose names differ only in numbers share a line. Then
/// come tables that are added to data or multiply it, vectors and single numbers, the largest
/// first; in brief, only some of them.
std::vector<std::string> frozen_lines(const std::vector<ReportedTensor>& all, const Uses& uses,
                                      Detail detail);

/// One line for the start of a run, with some names of those that look like weights; "" if there
/// are none.
std::string frozen_note(const std::vector<ReportedTensor>& all, const Uses& uses);

}  // namespace decent::onnx
