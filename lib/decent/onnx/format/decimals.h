#pragma once
// Turns float32 numbers back into the decimals that they came from.

namespace decent::onnx {

/// The shortest decimal of a float32, as a double. A file holds a number that was written as 1e-05
/// as float32, while PyTorch's own models have it as the double 1e-05, not 9.999999747378752e-06.
double as_written(float value);

}  // namespace decent::onnx
