#pragma once
// Small texts of messages and of the report.

#include <cstddef>
#include <string>
#include <string_view>

namespace decent::onnx {

/// Names in a line of the short report.
inline constexpr std::size_t kNamesInBrief = 3;

/// With a capital letter at the start, as a sentence has it.
std::string capitalised(std::string_view text);

/// What to do about a file whose operators or elements are those of a quantised model.
std::string quantised_advice();

}  // namespace decent::onnx
