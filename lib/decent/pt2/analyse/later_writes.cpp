#include "decent/pt2/analyse/later_writes.h"

#include <string>
#include <vector>

#include "decent/pt2/analyse/arguments.h"
#include "decent/pt2/analyse/target.h"
#include "decent/pt2/program/walk.h"

namespace decent::pt2 {
namespace {

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

std::set<const Node*> find_written_later(const ExportedProgram& program,
                                         const OperatorSchemas& schemas) {
  std::set<const Node*> found;
  for_each_graph(program.graph,
                 [&](const Graph& graph) { add(graph, &graph != &program.graph, schemas, found); });
  return found;
}

}  // namespace decent::pt2
