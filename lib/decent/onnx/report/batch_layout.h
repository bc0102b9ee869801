#pragma once
// What a file declares of the shapes of its inputs and outputs, against the batches of the data:
// their first dimension is the sample.

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

/// Compares an input with a batch of the data field `field`, of shape `batch`. The file says that
/// another dimension than the first is the batch, by its name ("batch", "N" ..) or as its numbers
/// fit the samples only so; the dimensions of a sample are in another order; other numbers, or
/// another number of dimensions. A fixed first dimension is not looked at.
std::optional<LayoutMismatch> input_mismatch(const ValueInfo& input, const std::string& field,
                                             std::span<const std::int64_t> batch,
                                             const ExportAdvice& advice);

/// Whether the file names another dimension of an output than the first as the batch. Where
/// `class_dim` (counted from 0) is that first one, it does no harm.
std::optional<LayoutMismatch> output_mismatch(const ValueInfo& output,
                                              std::optional<std::int64_t> class_dim,
                                              const ExportAdvice& advice);

}  // namespace decent::onnx
