#pragma once
// A graph without some of its outputs.

#include <set>
#include <string>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Takes the outputs that are not in `names` out of a graph, and the nodes that only they need.
void keep_outputs(Graph& graph, const std::set<std::string>& names);

}  // namespace decent::onnx
