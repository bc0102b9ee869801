#pragma once
// The parts of ONNX's operators that PyTorch lacks, as small TorchScript methods: the functions of
// operators/<family>.py. A module gets those that its graph needs. They call each other as methods,
// self._name(..), across all files.

#include <set>
#include <string>
#include <vector>

namespace decent::onnx {

/// The source of the methods `names` and of the methods that they call, callees first.
std::string helper_methods(const std::set<std::string>& names);

/// The names of all helpers.
std::vector<std::string> all_helper_names();

/// "def _name(self, ..): ..": this method alone.
std::string helper_source(const std::string& name);

}  // namespace decent::onnx
