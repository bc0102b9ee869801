#pragma once
// What ONNX's operators mean beyond PyTorch's, as small TorchScript methods that the module gets
// where its graph needs them.

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent::onnx {

/// A method of the module.
struct Helper {
  std::string_view name;
  std::vector<std::string> calls;  // other helpers
  std::string_view source;         // "def _name(self, ..): .."
};

/// Names of methods: `names` and what they call, callees first.
std::vector<std::string> helpers_with_dependencies(const std::set<std::string>& names);

/// All that there are.
std::vector<std::string> all_helper_names();

/// "def _name(self, ..): ..".
std::string helper_source(const std::string& name);

/// A line of an error about an operator without translation: its nodes, and the nearest name.
std::string unknown_operator_line(const std::string& name, const std::vector<std::string>& nodes,
                                  long opset, const std::vector<std::string>& known);

// Families that have a file of their own, helpers_<family>.cpp.
std::span<const Helper> activation_helpers();
std::span<const Helper> attention_helpers();
std::span<const Helper> grid_helpers();
std::span<const Helper> signal_helpers();
std::span<const Helper> convolution_helpers();
std::span<const Helper> elementwise_helpers();
std::span<const Helper> indexing_helpers();
std::span<const Helper> normalization_helpers();
std::span<const Helper> pooling_helpers();
std::span<const Helper> recurrent_helpers();
std::span<const Helper> reduction_helpers();
std::span<const Helper> resize_helpers();
std::span<const Helper> shape_helpers();

}  // namespace decent::onnx
