#include "decent/onnx/translate/source_lines.h"

namespace decent::onnx {

void SourceLines::add(const std::string& text) {
  text_ += std::string(depth_ * 4, ' ') + text + "\n";
}

void SourceLines::open(const std::string& text) {
  add(text);
  ++depth_;
}

}  // namespace decent::onnx
