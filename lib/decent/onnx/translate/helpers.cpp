#include "decent/onnx/translate/helpers.h"

#include <algorithm>
#include <map>

#include "decent/core/text.h"

namespace decent::onnx {
namespace {

// Each is a room of its own, so that a module holds only what it calls.
const Helper kShared[] = {
    {"_reshape", {}, R"(def _reshape(self, x: Tensor, shape: List[int]) -> Tensor:
    # 0 keeps the dimension
    sizes: List[int] = []
    for i, size in enumerate(shape):
        sizes.append(x.size(i) if size == 0 else size)
    return x.reshape(sizes)
)"},
    {"_quotient", {}, R"(def _quotient(self, a: int, b: int) -> int:
    # rounded down; a division by 0, and of the smallest integer by -1, would end the process
    assert b > 0, "an integer is divided by {}".format(b)
    return a // b
)"},
    {"_not_negative", {}, R"(def _not_negative(self, index: Tensor, size: int) -> Tensor:
    return torch.where(index < 0, index + size, index)
)"},
};

using Helpers = std::map<std::string, const Helper*>;

const Helpers& helpers() {
  static const Helpers all = [] {
    Helpers by_name;
    for (const std::span<const Helper> family :
         {std::span<const Helper>(kShared), activation_helpers(), attention_helpers(),
          grid_helpers(), signal_helpers(), convolution_helpers(), elementwise_helpers(),
          indexing_helpers(), normalization_helpers(), pooling_helpers(), recurrent_helpers(),
          reduction_helpers(), resize_helpers(), shape_helpers()}) {
      for (const Helper& each : family) by_name.emplace(each.name, &each);
    }
    return by_name;
  }();
  return all;
}

void add_with_calls(const std::string& name, std::vector<std::string>& order) {
  if (std::find(order.begin(), order.end(), name) != order.end()) return;
  for (const std::string& callee : helpers().at(name)->calls) add_with_calls(callee, order);
  order.push_back(name);
}

}  // namespace

std::vector<std::string> helpers_with_dependencies(const std::set<std::string>& names) {
  std::vector<std::string> order;
  for (const std::string& name : names) add_with_calls(name, order);
  return order;
}

std::vector<std::string> all_helper_names() {
  std::vector<std::string> names;
  for (const auto& [name, helper] : helpers()) names.push_back(name);
  return names;
}

std::string helper_source(const std::string& name) {
  return std::string(helpers().at(name)->source);
}

std::string unknown_operator_line(const std::string& name, const std::vector<std::string>& nodes,
                                  long opset, const std::vector<std::string>& known) {
  constexpr std::size_t kShown = 3;
  std::string text =
      "operator " + name + " (opset " + std::to_string(opset) + ") is not supported: ";
  for (std::size_t i = 0; i < std::min(kShown, nodes.size()); ++i)
    text += (i == 0 ? "node '" : ", '") + nodes[i] + "'";
  if (nodes.size() > kShown) text += " and " + std::to_string(nodes.size() - kShown) + " more";
  const auto nearest = nearest_name(name, known);
  return nearest ? text + "; the nearest that is: " + *nearest : text;
}

}  // namespace decent::onnx
