#include "decent/pt2/analyse/arguments.h"
#include "decent/core/quote.h"

#include <string_view>
#include <type_traits>
#include <variant>

namespace decent::pt2 {
namespace {

const std::string* name_in(const TensorArgument& tensor) { return &tensor.name; }
template <typename Number>
const std::string* name_in(const SymArgument<Number>& number) {
  return number.name();
}
const std::string* name_in(const CustomObjArgument& object) { return &object.name; }
template <typename Constant>
const std::string* name_in(const Constant& /*constant*/) {
  return nullptr;
}

// Of the last line of a traceback that names a place in a file: 'File "model.py", line 20, in
// forward'. Code that tracing made has names such as "<eval_with_key>.3".
std::string called_at(const Node& node) {
  static constexpr std::string_view kFile = "File \"";
  static constexpr std::string_view kLine = "\", line ";
  const auto trace = node.metadata.find("stack_trace");
  if (trace == node.metadata.end()) return "";
  std::string_view text = trace->second;
  for (std::size_t at = text.rfind(kFile); at != text.npos; at = text.rfind(kFile)) {
    const std::string_view place = text.substr(at + kFile.size());
    const std::size_t line = place.find(kLine);
    text = text.substr(0, at);
    if (line == place.npos || place.starts_with('<')) continue;
    const std::string_view path = place.substr(0, line);
    const std::string_view number = place.substr(line + kLine.size());
    return ", called at line " +
           on_one_line(number.substr(0, number.find_first_not_of("0123456789"))) + " of " +
           std::string(path.substr(path.rfind('/') + 1));
  }
  return "";
}

}  // namespace

const std::string* value_name(const Argument& argument) {
  return std::visit([](const auto& each) { return name_in(each); }, argument);
}

std::vector<Argument> elements_of(const Argument& argument) {
  return std::visit(
      [&](const auto& each) -> std::vector<Argument> {
        using List = std::remove_cvref_t<decltype(each)>;
        if constexpr (std::is_same_v<List, std::vector<TensorArgument>> ||
                      std::is_same_v<List, std::vector<SymIntArgument>> ||
                      std::is_same_v<List, std::vector<SymFloatArgument>> ||
                      std::is_same_v<List, std::vector<SymBoolArgument>>) {
          return {each.begin(), each.end()};
        } else if constexpr (std::is_same_v<List, std::vector<OptionalTensor>>) {
          std::vector<Argument> elements;
          for (const OptionalTensor& tensor : each)
            elements.push_back(tensor ? Argument(*tensor) : Argument(None{}));
          return elements;
        } else {
          return {argument};
        }
      },
      argument);
}

std::vector<Argument> results_of(const Node& node) {
  std::vector<Argument> results;
  for (const Argument& output : node.outputs) {
    for (Argument& each : elements_of(output)) results.push_back(std::move(each));
  }
  return results;
}

std::vector<const Graph*> regions_of(const Node& node) {
  std::vector<const Graph*> regions;
  for (const NamedArgument& input : node.inputs) {
    if (const auto* region = std::get_if<GraphArgument>(&input.value))
      regions.push_back(region->graph.get());
  }
  return regions;
}

std::vector<Argument> operands_of(const Node& node) {
  std::vector<Argument> operands;
  for (const NamedArgument& input : node.inputs) {
    if (std::holds_alternative<GraphArgument>(input.value)) {
      operands.clear();
      continue;
    }
    for (Argument& each : elements_of(input.value)) operands.push_back(std::move(each));
  }
  return operands;
}

void for_each_graph(const Graph& graph, const std::function<void(const Graph&)>& visit) {
  visit(graph);
  for (const Node& node : graph.nodes) {
    for (const Graph* region : regions_of(node)) for_each_graph(*region, visit);
  }
}

// "L__self__,,Net;L__self___bn,bn,torch.nn.modules.batchnorm.BatchNorm2d": the second of three in
// the last entry.
std::string module_of(const Node& node) {
  const auto stack = node.metadata.find("nn_module_stack");
  if (stack == node.metadata.end()) return "";
  std::string_view entry = stack->second;
  entry = entry.substr(entry.rfind(';') + 1);
  const std::size_t first = entry.find(',');
  const std::size_t second = first == entry.npos ? entry.npos : entry.find(',', first + 1);
  if (second == entry.npos) return "";
  return std::string(entry.substr(first + 1, second - first - 1));
}

std::string description_of(const Node& node) {
  const std::string name =
      node.name.empty() ? "number " + std::to_string(node.place) : in_quotes(node.name);
  return "node " + name + " (" + on_one_line(node.target) + ")" + called_at(node);
}

}  // namespace decent::pt2
