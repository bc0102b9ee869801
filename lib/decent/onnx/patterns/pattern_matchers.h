#pragma once
// The patterns of patterns.h, one function each: `root` is the last node of a pattern.

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/patterns/pattern_graph.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {

struct Match {
  /// Nodes besides the root that the replacement makes superfluous. No other node may read them,
  /// which recognise_patterns() checks.
  std::vector<const Node*> inner;
  /// In order; the last has the root's outputs.
  std::vector<Node> replacement;
  std::optional<RandomMask> mask = {};
};

using Matcher = std::optional<Match> (*)(const PatternGraph& graph, const Node& root);

std::optional<Match> match_gelu(const PatternGraph& graph, const Node& root);
std::optional<Match> match_tanh_gelu(const PatternGraph& graph, const Node& root);
std::optional<Match> match_layer_norm(const PatternGraph& graph, const Node& root);
std::optional<Match> match_rms_norm(const PatternGraph& graph, const Node& root);
std::optional<Match> match_group_norm(const PatternGraph& graph, const Node& root);
std::optional<Match> match_safe_softmax(const PatternGraph& graph, const Node& root);
std::optional<Match> match_attention(const PatternGraph& graph, const Node& root);
std::optional<Match> match_linear(const PatternGraph& graph, const Node& root);
std::optional<Match> match_dropout(const PatternGraph& graph, const Node& root);
std::optional<Match> match_silu(const PatternGraph& graph, const Node& root);
std::optional<Match> match_hardswish(const PatternGraph& graph, const Node& root);

/// Whether a node is a standard operator of that name with this many inputs.
bool is(const Node& node, std::string_view op_type, std::size_t inputs);

/// A node in place of `root`, under its name, with its outputs.
Node node_like(const Node& root, std::string op_type, std::int64_t opset,
               std::vector<std::string> inputs);

/// A node before the one in place of `root`: its output is named after the root's.
Node node_before(const Node& root, std::string op_type, std::int64_t opset,
                 std::vector<std::string> inputs, const std::string& suffix);

void set_attribute(Node& node, const std::string& name, Attribute::Value value);

}  // namespace decent::onnx
