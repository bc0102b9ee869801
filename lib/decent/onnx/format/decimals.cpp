#include "decent/onnx/format/decimals.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace decent::onnx {

double as_written(float value) {
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double number = value;
  std::from_chars(text.data(), end, number);
  // The decimal of the largest float is larger than the float itself, which PyTorch refuses.
  return std::abs(number) > std::numeric_limits<float>::max() ? value : number;
}

}  // namespace decent::onnx
