#include "decent/onnx/translate/operators.h"

#include <algorithm>

namespace decent::onnx {

const std::vector<Operator>& operator_table() {
  static const std::vector<Operator> table = [] {
    std::vector<Operator> all;
    for (const auto family :
         {elementwise_operators(), bounds_operators(),     bitwise_operators(),
          comparison_operators(),  activation_operators(), shape_operators(),
          cutting_operators(),     indexing_operators(),   scatter_operators(),
          creation_operators(),    reduction_operators(),  matrix_operators(),
          convolution_operators(), pooling_operators(),    normalization_operators(),
          random_operators(),      recurrent_operators(),  attention_operators(),
          resize_operators(),      grid_operators(),       signal_operators(),
          sequence_operators(),    control_operators(),    loss_operators()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
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
