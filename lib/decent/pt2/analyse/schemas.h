#pragma once
// What PyTorch declares about its operators, as far as a translation needs it. Code that links
// LibTorch answers (model/pt2/import.cpp), so that nothing here includes it.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {

struct SchemaArgument {
  std::string name;
  bool is_float = false;    // takes only a float; a file may have 0 for 0.0
  bool is_written = false;  // the operator writes into the tensor
  bool is_scalar = false;   // takes a number of any type (Scalar)
  bool is_tensor = false;   // takes a tensor; a file may have a number
};

struct OperatorSchema {
  std::vector<SchemaArgument> arguments;
  bool is_random = false;  // takes numbers from the random generator
  /// For each result, the argument whose memory it shares or may share.
  std::vector<std::optional<std::size_t>> results_in;

  /// nullptr if there is no argument of that name.
  const SchemaArgument* find(const std::string& argument) const {
    for (const SchemaArgument& each : arguments) {
      if (each.name == argument) return &each;
    }
    return nullptr;
  }
};

class OperatorSchemas {
 public:
  virtual ~OperatorSchemas() = default;
  /// nullptr if PyTorch has no such operator. Valid as long as this object.
  virtual const OperatorSchema* find(const Target& target) const = 0;
};

/// Whether the node writes into this input. The schema of detach_ says so, but it does not change
/// the elements.
inline bool writes(const Node& node, const OperatorSchema& schema, const NamedArgument& input) {
  const SchemaArgument* argument = schema.find(input.name);
  return argument != nullptr && argument->is_written && parse_target(node.target).name != "detach_";
}

/// Calls visit(input, result) for each result of the node that shares, or may share, the memory of
/// an input.
template <typename Visit>
void for_each_shared(const Node& node, const OperatorSchema& schema, const Visit& visit) {
  for (std::size_t i = 0; i < std::min(schema.results_in.size(), node.outputs.size()); ++i) {
    if (!schema.results_in[i]) continue;
    const Argument* source = node.find(schema.arguments[*schema.results_in[i]].name);
    if (source != nullptr) visit(*source, node.outputs[i]);
  }
}

}  // namespace decent::pt2
