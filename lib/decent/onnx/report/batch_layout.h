#pragma once
// Compares the shapes that a file declares for its inputs and outputs with batches of the data,
// whose first dimension is the sample.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "decent/onnx/format/export_advice.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// One line that says what does not fit, and one that says what to do.
struct LayoutMismatch {
  std::string text;
  std::string way_out;
};

/// Compares an input with a batch of the data field `field`, of shape `batch`. Mismatches are:
/// another dimension than the first is the batch, by its name ("batch", "N" ..) or because the
/// numbers fit the samples only then; the dimensions of a sample are in another order; the sizes or
/// the number of dimensions differ. A fixed first dimension is ignored.
std::optional<LayoutMismatch> input_mismatch(const ValueInfo& input, const std::string& field,
                                             std::span<const std::int64_t> batch,
                                             const ExportAdvice& advice);

/// A mismatch if the file names another dimension of an output than the first as the batch. It does
/// no harm if `class_dim` (counted from 0) is the first one.
std::optional<LayoutMismatch> output_mismatch(const ValueInfo& output,
                                              std::optional<std::int64_t> class_dim,
                                              const ExportAdvice& advice);

}  // namespace decent::onnx
