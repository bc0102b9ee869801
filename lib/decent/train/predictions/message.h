#pragma once
// A batch's predictions as workers send them: a few numbers, and the elements as one tensor.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "decent/task/predicted.h"

namespace decent {

struct PredictionHeader {
  std::vector<std::int64_t> shape = {};        // of the output; empty: there are no samples
  std::vector<std::int64_t> class_shape = {};  // empty: no classes
  std::vector<std::int64_t> left_out = {};     // numbers of the batch's samples without prediction
};

PredictionHeader header_of(const Predicted& predicted);

/// uint8 [bytes]: output, class and probability one after another.
at::Tensor packed(const Predicted& predicted);
std::int64_t packed_bytes(const PredictionHeader& header);
/// The predictions again, in the memory of `bytes`.
Predicted unpacked(const PredictionHeader& header, const at::Tensor& bytes);

}  // namespace decent
