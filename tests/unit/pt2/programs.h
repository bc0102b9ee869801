#pragma once
// Programs put together by hand, and schemas for their operators.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decent/pt2/translate/translation.h"

namespace decent::pt2::testing {

inline Argument tensor(const std::string& name) { return TensorArgument{name}; }
inline Argument size(const std::string& name) { return SymIntArgument{{name}}; }

using Inputs = std::vector<std::pair<std::string, Argument>>;

/// "torch.ops.aten.relu.default" with inputs by position. Its name is that of its first result.
inline Node node(const std::string& target, const Inputs& inputs, std::vector<Argument> outputs) {
  Node result;
  result.target = target;
  for (const auto& [name, value] : inputs)
    result.inputs.push_back({name, value, NamedArgument::Kind::positional});
  if (!outputs.empty()) {
    if (const auto* first = std::get_if<TensorArgument>(&outputs.front()))
      result.name = first->name;
  }
  result.outputs = std::move(outputs);
  return result;
}

/// One input x [s0, 3], one parameter "fc.weight" (p_w), one buffer "bn.mean" (b_m); returns the
/// values that `results` names.
inline ExportedProgram program(std::vector<Node> nodes, const std::vector<std::string>& results) {
  ExportedProgram made;
  made.graph.nodes = std::move(nodes);
  made.input_specs = {ParameterInput{"p_w", "fc.weight"}, BufferInput{"b_m", "bn.mean", true},
                      UserInput{tensor("x")}};
  made.graph.inputs = {tensor("p_w"), tensor("b_m"), tensor("x")};
  SymInt batch;
  batch.expression = "Symbol('s0')";
  SymInt width;
  width.value = 3;
  made.graph.tensor_values["x"].sizes = {batch, width};
  made.weights["fc.weight"].is_param = true;
  made.weights["fc.weight"].requires_grad = true;
  made.weights["bn.mean"];
  for (const std::string& each : results) {
    made.graph.outputs.push_back(tensor(each));
    made.output_specs.emplace_back(UserOutput{tensor(each)});
  }
  made.out_spec.kind = results.size() == 1 ? TreeSpec::Kind::leaf : TreeSpec::Kind::tuple;
  if (results.size() != 1) made.out_spec.children.resize(results.size());
  return made;
}

/// Operators whose names end in "_" write into their first argument and return it, as does view
/// without writing; dropout takes a float, rand is random; nothing is known of "unknown".
class Schemas final : public OperatorSchemas {
 public:
  const OperatorSchema* find(const Target& target) const override {
    if (target.name == "unknown" || !target.is_aten()) return nullptr;
    const bool writes = target.name.ends_with('_');
    OperatorSchema& schema = known_[target.name];
    schema.arguments = {{.name = "self", .is_written = writes}, {.name = "p", .is_float = true}};
    schema.is_random = target.name == "rand";
    schema.results_in = {std::nullopt};
    if (writes || target.name == "view") schema.results_in = {0};
    return &schema;
  }

 private:
  mutable std::map<std::string, OperatorSchema> known_;
};

}  // namespace decent::pt2::testing
