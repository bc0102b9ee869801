#include "decent/pt2/write/inference_form.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "decent/core/error.h"
#include "decent/pt2/analyse/nodes.h"

namespace decent::pt2 {
namespace {

using OrderedJson = nlohmann::ordered_json;

// NamedArgument of torch/_export/serde/schema.py.
OrderedJson argument_of(const char* name, OrderedJson value) {
  OrderedJson argument;
  argument["name"] = name;
  argument["arg"] = std::move(value);
  argument["kind"] = static_cast<int>(NamedArgument::Kind::positional);
  return argument;
}

OrderedJson real(double number) { return {{"as_float", number}}; }

// Walks through the graph and its JSON side by side.
class InferenceForm {
 public:
  InferenceForm(const ModeSurvey& modes, const BufferWrites& writes)
      : modes_(modes), writes_(writes) {}

  /// Whether anything has changed.
  bool edit(const Graph& graph, OrderedJson& json) {
    OrderedJson nodes = OrderedJson::array();  // copies of buffers come before their readers
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      OrderedJson& node = json.at("nodes").at(i);
      edit(graph.nodes[i], node);
      const auto writes = writes_.find(&graph.nodes[i]);
      if (writes != writes_.end()) edit_writes(writes->second, node, json, nodes);
      nodes.push_back(std::move(node));
    }
    json.at("nodes") = std::move(nodes);
    return is_changed_;
  }

 private:
  void edit(const Node& node, OrderedJson& json) {
    OrderedJson& inputs = json.at("inputs");
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto* region = std::get_if<GraphArgument>(&node.inputs[i].value);
      if (region != nullptr)
        edit(*region->graph, inputs.at(i).at("arg").at("as_graph").at("graph"));
    }
    if (const ModeSwitch* found = modes_.following(node); found != nullptr && found->is_on)
      turn_off(node, *found, json);
    // Its numbers are only used by noise that is off.
    if (modes_.noise_sources.contains(&node) && parse_target(node.target).name == "rand")
      call(json, "zeros.default", inputs);
  }

  void edit_writes(const NodeWrites& writes, OrderedJson& json, OrderedJson& graph,
                   OrderedJson& nodes) {
    OrderedJson& inputs = json.at("inputs");
    if (writes.gives_written) {
      const std::size_t input = writes.tensors.front().input;
      call(json, "alias.default",
           OrderedJson::array({argument_of("self", inputs.at(input).at("arg"))}));
      return;
    }
    for (const BufferWrite& each : writes.tensors) {
      OrderedJson& tensor = inputs.at(each.input).at("arg");
      nodes.push_back(copy_of(tensor, json, graph));
      tensor = nodes.back().at("outputs").at(0);
    }
  }

  // Makes a node before `reader` that copies the tensor into which the reader would write.
  OrderedJson copy_of(const OrderedJson& tensor, const OrderedJson& reader, OrderedJson& graph) {
    const std::string& original = tensor.at("as_tensor").at("name").get_ref<const std::string&>();
    OrderedJson& values = graph.at("tensor_values");
    std::string name;
    do {
      name = original + "_copy_" + std::to_string(copies_++);
    } while (values.contains(name));
    values[name] = values.at(original);
    OrderedJson node = reader;
    node["name"] = name;
    node["outputs"] = OrderedJson::array({{{"as_tensor", {{"name", name}}}}});
    call(node, "clone.default", OrderedJson::array({argument_of("self", tensor)}));
    return node;
  }

  void turn_off(const Node& node, const ModeSwitch& found, OrderedJson& json) {
    if (found.kind == ModeSwitch::Kind::noise) return fill(node, found.in_evaluation, json);
    OrderedJson off = {{"as_bool", false}};
    if (found.kind == ModeSwitch::Kind::probability) off = real(0);
    if (found.kind == ModeSwitch::Kind::divisor) off = real(1);
    for (OrderedJson& input : json.at("inputs")) {
      if (input.at("name") == found.argument) input["arg"] = off;
    }
    is_changed_ = true;
  }

  // Turns noise into the same number everywhere.
  void fill(const Node& node, double number, OrderedJson& json) {
    const bool is_in_place = parse_target(node.target).name.ends_with('_');
    OrderedJson self = argument_of("self", json.at("inputs").at(0).at("arg"));
    call(json, is_in_place ? "fill_.Scalar" : "full_like.default",
         OrderedJson::array(
             {std::move(self), argument_of(is_in_place ? "value" : "fill_value", real(number))}));
  }

  // Makes the node call another operator, with the same result.
  void call(OrderedJson& json, const char* target, OrderedJson inputs) {
    json["target"] = std::string("torch.ops.aten.") + target;
    json["inputs"] = std::move(inputs);
    is_changed_ = true;
  }

  const ModeSurvey& modes_;
  const BufferWrites& writes_;
  std::size_t copies_ = 0;
  bool is_changed_ = false;
};

}  // namespace

std::optional<std::string> inference_form(const ExportedProgram& program, const ModeSurvey& modes,
                                          const BufferWrites& writes, std::string_view json) {
  if (modes.mode == ExportedMode::eval) return std::nullopt;  // it writes the same in both modes
  try {
    OrderedJson text = OrderedJson::parse(json);
    InferenceForm form(modes, writes);
    if (!form.edit(program.graph, text.at("graph_module").at("graph"))) return std::nullopt;
    return text.dump();
  } catch (const OrderedJson::exception&) {
    throw UserError("program '" + program.name + "' has keys twice, and cannot be written");
  }
}

}  // namespace decent::pt2
