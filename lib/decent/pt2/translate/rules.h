#pragma once
// The table of operators: what a node becomes. An operator without a row is called as it is.

#include <span>
#include <string_view>

#include "decent/pt2/analyse/target.h"

namespace decent::pt2 {

class NodeContext;

/// Writes a node. Throws Unsupported.
using Rule = void (*)(NodeContext& context);

struct OperatorRule {
  std::string_view name;  // "aten.item": of all overloads
  Rule rule;
};

/// The row's, or for an operator without one call_operator (of PyTorch) or a refusal.
Rule rule_of(const Target& target);

/// The rule of nodes that only check what held at the export, as _assert_scalar does, and have no
/// results that others read.
void leave_out(NodeContext& context);

/// Calls the operator of PyTorch that has the node's name: "y = torch.relu(x)".
void call_operator(NodeContext& context);

// One table a file.
std::span<const OperatorRule> assertion_rules();
std::span<const OperatorRule> number_rules();
std::span<const OperatorRule> tensor_rules();
std::span<const OperatorRule> region_rules();

}  // namespace decent::pt2
