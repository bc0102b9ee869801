#include "decent/onnx/format/wording.h"

#include <array>
#include <cctype>
#include <cstdio>

namespace decent::onnx {

std::string count_text(std::int64_t count) {
  std::array<char, 32> text{};
  if (count < 10'000) return std::to_string(count);
  const bool is_thousands = count < 1'000'000;
  const double value = static_cast<double>(count) / (is_thousands ? 1e3 : 1e6);
  std::snprintf(text.data(), text.size(), is_thousands ? "%.1fk" : "%.1fM", value);
  return text.data();
}

std::string capitalised(std::string_view text) {
  std::string result(text);
  if (!result.empty())
    result.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(result.front())));
  return result;
}

std::string quantised_advice() {
  return "Give model.path the float model that it was made from, as the exporter wrote it, and "
         "quantise what --export writes once it is trained";
}

}  // namespace decent::onnx
