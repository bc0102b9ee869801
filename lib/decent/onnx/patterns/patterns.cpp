#include "decent/onnx/patterns/patterns.h"

#include <algorithm>
#include <array>
#include <set>

#include "decent/onnx/graph/uses.h"
#include "decent/onnx/patterns/pattern_matchers.h"

namespace decent::onnx {

bool is(const Node& node, std::string_view op_type, std::size_t inputs) {
  return node.op_type == op_type && node.domain.empty() && node.inputs.size() == inputs &&
         !node.outputs.empty();
}

Node node_like(const Node& root, std::string op_type, std::int64_t opset,
               std::vector<std::string> inputs) {
  Node node;
  node.name = root.name;
  node.metadata = root.metadata;
  node.op_type = std::move(op_type);
  node.opset = opset;
  node.inputs = std::move(inputs);
  node.outputs = {root.outputs.front()};
  return node;
}

Node node_before(const Node& root, std::string op_type, std::int64_t opset,
                 std::vector<std::string> inputs, const std::string& suffix) {
  Node node = node_like(root, std::move(op_type), opset, std::move(inputs));
  node.name += "/" + suffix;
  node.outputs = {root.outputs.front() + "/" + suffix};
  return node;
}

void set_attribute(Node& node, const std::string& name, Attribute::Value value) {
  Attribute attribute;
  attribute.name = name;
  attribute.value = std::move(value);
  node.attributes.push_back(std::move(attribute));
}

namespace {

struct Pattern {
  std::string_view name;
  Matcher match;
};

// Patterns that are parts of others come first.
constexpr std::array kPatterns = {
    Pattern{"GELU", match_gelu},
    Pattern{"GELU (tanh)", match_tanh_gelu},
    Pattern{"layer norm", match_layer_norm},
    Pattern{"RMS norm", match_rms_norm},
    Pattern{"group norm", match_group_norm},
    Pattern{"linear", match_linear},
    Pattern{"hardswish", match_hardswish},
    Pattern{"SiLU", match_silu},
    Pattern{"dropout of random numbers", match_dropout},
    Pattern{"softmax of masked rows", match_safe_softmax},
    Pattern{"attention", match_attention},
};

/// All places of one pattern in one graph.
class Rewriting {
 public:
  Rewriting(Graph& graph, std::int64_t opset, std::vector<RandomMask>* masks)
      : graph_(graph), view_(graph, opset), masks_(masks) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) index_[&graph.nodes[i]] = i;
  }

  /// Replaces the pattern and returns the number of places.
  std::size_t run(Matcher matcher) {
    std::size_t found = 0;
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& root = graph_.nodes[i];
      if (taken_.count(i) != 0 || root.outputs.empty()) continue;
      std::optional<Match> match = matcher(view_, root);
      if (!match || !is_closed(*match, root)) continue;
      accept(std::move(*match), i);
      ++found;
    }
    if (found != 0) rebuild();
    return found;
  }

 private:
  // Whether only nodes of the match read the values that it removes, and no other match uses its
  // nodes.
  bool is_closed(const Match& match, const Node& root) const {
    std::set<const Node*> nodes(match.inner.begin(), match.inner.end());
    nodes.insert(&root);
    std::map<std::string_view, std::size_t> reads;
    for (const Node* node : nodes) {
      if (taken_.count(index_.at(node)) != 0 || !nested_graphs(*node).empty()) return false;
      for (const std::string& name : node->inputs) ++reads[name];
    }
    const auto only_here = [&](const std::string& name) {
      return name.empty() || view_.readers(name) == reads[name];
    };
    return std::all_of(nodes.begin(), nodes.end(), [&](const Node* node) {
      const auto first = node->outputs.begin() + (node == &root ? 1 : 0);
      return std::all_of(first, node->outputs.end(), only_here);
    });
  }

  void accept(Match match, std::size_t root) {
    taken_.insert(root);
    for (const Node* node : match.inner) taken_.insert(index_.at(node));
    if (match.mask && masks_ != nullptr) masks_->push_back(std::move(*match.mask));
    replacements_[root] = std::move(match.replacement);
  }

  void rebuild() {
    const std::set<std::string> read_before = read_names(graph_.nodes);
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto replacement = replacements_.find(i);
      if (replacement != replacements_.end()) {
        for (Node& node : replacement->second) nodes.push_back(std::move(node));
      } else if (taken_.count(i) == 0) {
        nodes.push_back(std::move(graph_.nodes[i]));
      }
    }
    graph_.nodes = std::move(nodes);
    drop_unread(read_before);
  }

  // Drops nodes that only computed shapes and constants for nodes that are gone.
  void drop_unread(const std::set<std::string>& read_before) {
    std::map<std::string, std::size_t> readers;
    count(graph_, readers);
    std::vector<Node> kept;
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      Node& node = graph_.nodes[i];
      const bool was_read =
          std::any_of(node.outputs.begin(), node.outputs.end(),
                      [&](const auto& name) { return read_before.count(name) != 0; });
      const bool is_read =
          std::any_of(node.outputs.begin(), node.outputs.end(),
                      [&](const auto& name) { return !name.empty() && readers[name] != 0; });
      if (!was_read || is_read || !nested_graphs(node).empty()) {
        kept.push_back(std::move(node));
        continue;
      }
      for (const std::string& name : node.inputs) --readers[name];
    }
    std::reverse(kept.begin(), kept.end());
    graph_.nodes = std::move(kept);
  }

  static void count(const Graph& graph, std::map<std::string, std::size_t>& readers) {
    for (const Node& node : graph.nodes) {
      for (const std::string& name : node.inputs) ++readers[name];
      for (const Graph* nested : nested_graphs(node)) count(*nested, readers);
    }
    for (const ValueInfo& output : graph.outputs) ++readers[output.name];
  }

  static std::set<std::string> read_names(const std::vector<Node>& nodes) {
    std::set<std::string> names;
    for (const Node& node : nodes) names.insert(node.inputs.begin(), node.inputs.end());
    return names;
  }

  Graph& graph_;
  PatternGraph view_;
  std::vector<RandomMask>* masks_;
  std::map<const Node*, std::size_t> index_;
  std::set<std::size_t> taken_;
  std::map<std::size_t, std::vector<Node>> replacements_;
};

void recognise(Graph& graph, std::int64_t opset, std::map<std::string, std::size_t>& found,
               std::vector<RandomMask>* masks) {
  for (const Pattern& pattern : kPatterns) {
    const std::size_t places = Rewriting(graph, opset, masks).run(pattern.match);
    if (places != 0) found[std::string(pattern.name)] += places;
  }
  for (Node& node : graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      auto* nested = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (nested != nullptr && *nested) recognise(**nested, opset, found, masks);
    }
  }
}

}  // namespace

std::map<std::string, std::size_t> recognise_patterns(Graph& graph, std::int64_t opset,
                                                      std::vector<RandomMask>* masks) {
  std::map<std::string, std::size_t> found;
  recognise(graph, opset, found, masks);
  return found;
}

}  // namespace decent::onnx
