#pragma once
// Numbers of float32 as the decimals that they were.

namespace decent::onnx {

/// The double that the shortest decimal of a float32 stands for. Files hold float32 of what was
/// written as 1e-05, and PyTorch's own models have that as a double, not 9.999999747378752e-06.
double as_written(float value);

}  // namespace decent::onnx
