#pragma once
// The parts of ONNX's operators that PyTorch lacks, as small TorchScript methods: the functions of
// operators/<family>.py. A module gets those that its graph needs. They call each other as methods,
// self._name(..), across all files.

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent::onnx {

/// A file operators/<family>.py, which the build embeds in the program (cmake/EmbedHelpers.cmake).
struct HelperFile {
  std::string_view name;  // "recurrent.py"
  std::string_view text;
};

/// In alphabetical order.
std::span<const HelperFile> helper_files();

/// The source of the methods `names` and of the methods that they call, callees first.
std::string helper_methods(const std::set<std::string>& names);

/// The names of all helpers.
std::vector<std::string> all_helper_names();

/// "def _name(self, ..): ..": this method alone.
std::string helper_source(const std::string& name);

}  // namespace decent::onnx
