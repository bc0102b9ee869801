#include "decent/onnx/format/wording.h"

#include <cctype>

namespace decent::onnx {

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
