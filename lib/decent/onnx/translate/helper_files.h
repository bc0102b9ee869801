#pragma once
// The files operators/<family>.py, which the build embeds in the program
// (cmake/EmbedHelpers.cmake).

#include <span>
#include <string_view>

namespace decent::onnx {

struct HelperFile {
  std::string_view name;  // "recurrent.py"
  std::string_view text;
};

/// In alphabetical order.
std::span<const HelperFile> helper_files();

}  // namespace decent::onnx
