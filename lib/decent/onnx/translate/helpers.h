#pragma once
// What ONNX's operators mean beyond PyTorch's, as small TorchScript methods that the module gets
// where its graph needs them: the functions of operators/<family>.py. They call each other as
// methods, self._name(..), wherever they stand.

#include <set>
#include <string>
#include <vector>

namespace decent::onnx {

/// The source of the methods `names` and of those that they call, callees first.
std::string helper_methods(const std::set<std::string>& names);

/// All that there are.
std::vector<std::string> all_helper_names();

/// "def _name(self, ..): ..", that method alone.
std::string helper_source(const std::string& name);

}  // namespace decent::onnx
