#include "decent/onnx/translate/method_source.h"

#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {

void MethodSource::add(const std::string& line) {
  lines_ += std::string(depth_ * 4, ' ') + line + "\n";
}

void MethodSource::open(const std::string& line) {
  add(line);
  ++depth_;
}

std::string MethodSource::helper(std::string_view name) {
  helpers_.emplace(name);
  return "self." + std::string(name);
}

std::string MethodSource::device() {
  needs_device_ = true;
  return "device";
}

std::string MethodSource::text(const std::string& signature, const std::string& device) const {
  const std::string head = needs_device_ ? "    device = " + device + "\n" : "";
  return helper_methods(helpers_) + signature + "\n" + head + lines_;
}

}  // namespace decent::onnx
