#pragma once
// What ONNX's operators mean beyond PyTorch's, as small TorchScript methods that the module gets
// where its graph needs them.

#include <set>
#include <string>
#include <vector>

namespace decent::onnx {

/// Names of methods: `names` and what they call, callees first.
std::vector<std::string> helpers_with_dependencies(const std::set<std::string>& names);

/// "def _name(self, ..): ..".
std::string helper_source(const std::string& name);

/// A line of an error about an operator without translation: its nodes, and the nearest name.
std::string unknown_operator_line(const std::string& name, const std::vector<std::string>& nodes,
                                  long opset, const std::vector<std::string>& known);

}  // namespace decent::onnx
