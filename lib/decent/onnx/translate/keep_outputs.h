#pragma once
// Removes some outputs of a graph.

#include <set>
#include <string>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Removes the outputs that are not in `names` from a graph, and the nodes that only they need.
void keep_outputs(Graph& graph, const std::set<std::string>& names);

}  // namespace decent::onnx
