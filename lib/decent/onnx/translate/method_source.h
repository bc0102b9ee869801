#pragma once
// The source of a method, line by line.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace decent::onnx {

/// Lines of TorchScript, and the helpers and the device that they need.
class MethodSource {
 public:
  void add(const std::string& line);
  /// Lines up to the matching close() are indented one step further.
  void open(const std::string& line);
  void close() { --depth_; }

  /// "self._name": a method of helpers.h.
  std::string helper(std::string_view name);
  /// The variable with the device of the model's tensors.
  std::string device();

  /// The methods that are called, then this one: `signature`, a line "device = .." if it is needed,
  /// the lines.
  std::string text(const std::string& signature, const std::string& device) const;

 private:
  std::string lines_;
  std::size_t depth_ = 1;  // inside a method
  std::set<std::string> helpers_;
  bool needs_device_ = false;
};

}  // namespace decent::onnx
