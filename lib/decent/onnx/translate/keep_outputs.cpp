#include "decent/onnx/translate/keep_outputs.h"

#include <algorithm>
#include <vector>

#include "decent/onnx/graph/uses.h"

namespace decent::onnx {
void keep_outputs(Graph& graph, const std::set<std::string>& names) {
  std::erase_if(graph.outputs,
                [&](const ValueInfo& output) { return names.count(output.name) == 0; });
  std::set<std::string> needed = names;
  std::vector<Node> kept;
  // Nodes come after the nodes that they need.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_needed = std::any_of(
        node->outputs.begin(), node->outputs.end(),
        [&](const std::string& output) { return !output.empty() && needed.count(output) != 0; });
    if (!is_needed) continue;
    for (std::string& name : names_read(*node)) needed.insert(std::move(name));
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
}

}  // namespace decent::onnx
