#include "decent/train/predictions/message.h"

#include <ATen/Functions.h>

namespace decent {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.reshape({-1}).view(at::kByte); }

// Takes the elements of a tensor from the front of `bytes`. They are copied, since elements of
// 8 bytes may begin anywhere.
at::Tensor taken(at::Tensor& bytes, const std::vector<std::int64_t>& shape, at::ScalarType type) {
  const at::Tensor tensor = at::empty(shape, type);
  const at::Tensor into = bytes_of(tensor);
  into.copy_(bytes.narrow(0, 0, into.numel()));
  bytes = bytes.narrow(0, into.numel(), bytes.numel() - into.numel());
  return tensor;
}

}  // namespace

PredictionHeader header_of(const Predicted& predicted) {
  PredictionHeader header{.shape = predicted.output.sizes().vec()};
  if (predicted.classes.defined()) header.class_shape = predicted.classes.sizes().vec();
  return header;
}

at::Tensor packed(const Predicted& predicted) {
  if (!predicted.classes.defined()) return bytes_of(predicted.output);
  return at::cat(
      {bytes_of(predicted.output), bytes_of(predicted.classes), bytes_of(predicted.probability)});
}

std::int64_t packed_bytes(const PredictionHeader& header) {
  const std::int64_t of_class = sizeof(std::int64_t) + sizeof(float);
  return count_of(header.shape) * static_cast<std::int64_t>(sizeof(float)) +
         count_of(header.class_shape) * of_class;
}

Predicted unpacked(const PredictionHeader& header, const at::Tensor& bytes) {
  at::Tensor left = bytes;
  Predicted predicted{.output = taken(left, header.shape, at::kFloat)};
  if (header.class_shape.empty()) return predicted;
  predicted.classes = taken(left, header.class_shape, at::kLong);
  predicted.probability = taken(left, header.class_shape, at::kFloat);
  return predicted;
}

}  // namespace decent
