#include "decent/onnx/translate/operators.h"

#include <algorithm>

namespace decent::onnx {

const std::vector<Operator>& operator_table() {
  static const std::vector<Operator> table = [] {
    std::vector<Operator> all;
    const auto add = [&](std::span<const Operator> family) {
      all.insert(all.end(), family.begin(), family.end());
    };
#define DECENT_ADD_FAMILY(family) add(family##_operators());
    DECENT_OPERATOR_FAMILIES(DECENT_ADD_FAMILY)
#undef DECENT_ADD_FAMILY
    std::stable_sort(all.begin(), all.end(),
                     [](const Operator& a, const Operator& b) { return a.name < b.name; });
    return all;
  }();
  return table;
}

const Operator* find_operator(std::string_view name, std::int64_t opset) {
  for (const Operator& each : operator_table()) {
    if (each.name == name && opset >= each.first_opset && opset <= each.last_opset) return &each;
  }
  return nullptr;
}

const Operator* find_pattern_operator(std::string_view name) {
  for (const Operator& each : pattern_operators()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace decent::onnx
