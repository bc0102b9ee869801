#pragma once
// The table of operators and their translations. An operator without a row is called as it is.

#include <span>
#include <string_view>

#include "decent/pt2/analyse/nodes.h"

namespace decent::pt2 {

class NodeContext;

/// Writes a node. Throws Unsupported.
using Rule = void (*)(NodeContext& context);

struct OperatorRule {
  std::string_view name;  // "aten.item": for all overloads
  Rule rule;
};

/// The rule of the operator's row; without one, call_operator for PyTorch's operators and a refusal
/// for others.
Rule rule_of(const Target& target);

/// The rule for nodes that only check facts of the export, like _assert_scalar, and have no results
/// that others read.
void leave_out(NodeContext& context);

/// Calls the operator of PyTorch that has the node's name: "y = torch.relu(x)".
void call_operator(NodeContext& context);

// One table for each file.
std::span<const OperatorRule> assertion_rules();
std::span<const OperatorRule> number_rules();
std::span<const OperatorRule> tensor_rules();
std::span<const OperatorRule> region_rules();

}  // namespace decent::pt2
