#include "decent/pt2/analyse/writes.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/program/walk.h"

namespace decent::pt2 {
namespace {

using Kind = OwnTensor::Kind;
using OwnTensors = ByName<OwnTensor>;  // by the graph's values that are views of them

const OwnTensor* own_tensor(const Argument& argument, const OwnTensors& tensors) {
  const std::string* name = value_name(argument);
  const auto found = name == nullptr ? tensors.end() : tensors.find(*name);
  return found == tensors.end() ? nullptr : &found->second;
}

// Follows the module's own tensors through a graph and the graphs inside of it.
class TensorFlow {
 public:
  using Visit = std::function<void(const Node&, const OwnTensors&)>;

  TensorFlow(const OperatorSchemas& schemas, Visit visit)
      : schemas_(schemas), visit_(std::move(visit)) {}

  void walk(const Graph& graph, OwnTensors& tensors) const {
    for (const Node& node : graph.nodes) {
      const std::vector<const Graph*> regions = regions_of(node);
      for (const Graph* region : regions) enter(node, *region, tensors);
      if (!regions.empty()) continue;
      visit_(node, tensors);
      follow_results(node, tensors);
    }
  }

 private:
  // If values of `from` are views of own tensors, so are those of `to`.
  static void pass(const std::vector<Argument>& from, const OwnTensors& tensors_of_from,
                   const std::vector<Argument>& to, OwnTensors& tensors) {
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      const OwnTensor* tensor = own_tensor(from[i], tensors_of_from);
      const std::string* name = value_name(to[i]);
      if (tensor != nullptr && name != nullptr) tensors.insert_or_assign(*name, *tensor);
    }
  }

  void enter(const Node& node, const Graph& region, OwnTensors& tensors) const {
    OwnTensors inside;
    pass(operands_of(node), tensors, region.inputs, inside);
    walk(region, inside);
    pass(region.outputs, inside, results_of(node), tensors);
  }

  void follow_results(const Node& node, OwnTensors& tensors) const {
    const OperatorSchema* schema = schemas_.find(parse_target(node.target));
    if (schema == nullptr) return;
    for_each_shared(node, *schema, [&](const Argument& source, const Argument& result) {
      const OwnTensor* tensor = own_tensor(source, tensors);
      if (tensor == nullptr) return;
      const OwnTensor whose = *tensor;  // a copy, because the map grows below
      for_each_value_name(result,
                          [&](const std::string& name) { tensors.insert_or_assign(name, whose); });
    });
  }

  const OperatorSchemas& schemas_;
  const Visit visit_;
};

OwnTensors own_tensors(const ExportedProgram& program) {
  OwnTensors tensors;
  for (const InputSpec& input : program.input_specs) {
    if (const auto* buffer = std::get_if<BufferInput>(&input))
      tensors.emplace(buffer->arg, OwnTensor{buffer->buffer_name, Kind::buffer});
    if (const auto* parameter = std::get_if<ParameterInput>(&input))
      tensors.emplace(parameter->arg, OwnTensor{parameter->parameter_name, Kind::parameter});
    if (const auto* constant = std::get_if<TensorConstantInput>(&input))
      tensors.emplace(constant->arg, OwnTensor{constant->tensor_constant_name, Kind::constant});
  }
  return tensors;
}

void visit_nodes(const ExportedProgram& program, const OperatorSchemas& schemas,
                 TensorFlow::Visit visit) {
  OwnTensors tensors = own_tensors(program);
  TensorFlow(schemas, std::move(visit)).walk(program.graph, tensors);
}

// Whether a node writes into one tensor, and that tensor is its only result.
bool gives_written(const Node& node, const OperatorSchema& schema, const NodeWrites& writes) {
  if (writes.tensors.size() != 1 || node.outputs.size() != 1 || schema.results_in.size() != 1)
    return false;
  const std::optional<std::size_t> source = schema.results_in.front();
  return source && schema.arguments[*source].name == node.inputs[writes.tensors[0].input].name;
}

// The nodes of norms that update their statistics, always or in training.
std::set<const Node*> updating_norms(const ModeSurvey& modes) {
  std::set<const Node*> nodes;
  for (const ModeSwitch& each : modes.switches) {
    if (each.kind == ModeSwitch::Kind::flag && (each.is_on || each.follows))
      nodes.insert(each.node);
  }
  return nodes;
}

// Which values of a graph share memory: each such memory has the name of one of its values.
class Memory {
 public:
  Memory(const Graph& graph, const OperatorSchemas& schemas) : schemas_(schemas) {
    for (const Node& node : graph.nodes) follow(node);
  }

  std::string of(std::string value) const {
    for (auto found = shared_.find(value); found != shared_.end(); found = shared_.find(value))
      value = found->second;
    return value;
  }

 private:
  void share(const std::string& a, const std::string& b) {
    const std::string of_a = of(a), of_b = of(b);
    if (of_a != of_b) shared_.emplace(of_b, of_a);
  }

  void share(const Argument& a, const Argument& b) {
    for_each_value_name(a, [&](const std::string& one) {
      for_each_value_name(b, [&](const std::string& other) { share(one, other); });
    });
  }

  void follow(const Node& node) {
    if (!regions_of(node).empty()) {  // any result may be any of what the node is given
      for (const Argument& operand : operands_of(node)) {
        for (const Argument& result : node.outputs) share(operand, result);
      }
      return;
    }
    const OperatorSchema* schema = schemas_.find(parse_target(node.target));
    if (schema == nullptr) return;
    for_each_shared(node, *schema,
                    [&](const Argument& source, const Argument& result) { share(source, result); });
  }

  const OperatorSchemas& schemas_;
  ByName<std::string> shared_;  // a value, and another with the same memory
};

// What a node writes into, or may write into.
std::vector<const Argument*> written_by(const Node& node, const OperatorSchemas& schemas) {
  std::vector<const Argument*> written;
  if (!regions_of(node).empty()) {
    for (const NamedArgument& input : node.inputs) written.push_back(&input.value);
    return written;
  }
  const OperatorSchema* schema = schemas.find(parse_target(node.target));
  if (schema == nullptr) return written;
  for (const NamedArgument& input : node.inputs) {
    if (writes(node, *schema, input)) written.push_back(&input.value);
  }
  return written;
}

void add(const Graph& graph, bool is_inside, const OperatorSchemas& schemas,
         std::set<const Node*>& found) {
  const Memory memory(graph, schemas);
  std::set<std::string> written;  // memory, by the nodes behind the present one
  const auto note = [&](const Argument& argument) {
    for_each_value_name(argument,
                        [&](const std::string& name) { written.insert(memory.of(name)); });
  };
  if (is_inside) {
    for (const Argument& input : graph.inputs) note(input);
  }
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const Argument& result : node->outputs) {
      for_each_value_name(result, [&](const std::string& name) {
        if (written.contains(memory.of(name))) found.insert(&*node);
      });
    }
    for (const Argument* argument : written_by(*node, schemas)) note(*argument);
  }
}

}  // namespace

std::string module_of_buffer(const std::string& buffer) {
  const std::size_t dot = buffer.rfind('.');
  return dot == std::string::npos ? "" : buffer.substr(0, dot);
}

BufferWrites find_buffer_writes(const ExportedProgram& program, const OperatorSchemas& schemas) {
  BufferWrites found;
  visit_nodes(program, schemas, [&](const Node& node, const OwnTensors& tensors) {
    const OperatorSchema* schema = schemas.find(parse_target(node.target));
    if (schema == nullptr) return;
    NodeWrites all;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const OwnTensor* tensor = own_tensor(node.inputs[i].value, tensors);
      if (tensor != nullptr && writes(node, *schema, node.inputs[i]))
        all.tensors.push_back({tensor->name, i, tensor->kind});
    }
    if (all.tensors.empty()) return;
    all.gives_written = gives_written(node, *schema, all);
    found.emplace(&node, std::move(all));
  });
  return found;
}

std::vector<OwnTensor> find_statistics(const ExportedProgram& program,
                                       const OperatorSchemas& schemas, const ModeSurvey& modes) {
  const std::set<const Node*> norms = updating_norms(modes);
  std::vector<OwnTensor> found;
  visit_nodes(program, schemas, [&](const Node& node, const OwnTensors& tensors) {
    if (norms.count(&node) == 0) return;
    for (const char* name : {"running_mean", "running_var"}) {
      const Argument* statistics = node.find(name);
      const OwnTensor* tensor = statistics == nullptr ? nullptr : own_tensor(*statistics, tensors);
      if (tensor != nullptr) found.push_back(*tensor);
    }
  });
  return found;
}

std::set<const Node*> find_written_later(const ExportedProgram& program,
                                         const OperatorSchemas& schemas) {
  std::set<const Node*> found;
  for_each_graph(program.graph,
                 [&](const Graph& graph) { add(graph, &graph != &program.graph, schemas, found); });
  return found;
}

}  // namespace decent::pt2
