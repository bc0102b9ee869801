#pragma once
// The source of a method, line by line.

#include <cstddef>
#include <string>

namespace decent::onnx {

/// Lines of TorchScript.
class SourceLines {
 public:
  void add(const std::string& text);
  void open(const std::string& text);
  void close() { --depth_; }
  std::string text() const { return text_; }

 private:
  std::string text_;
  std::size_t depth_ = 1;  // inside a method
};

}  // namespace decent::onnx
