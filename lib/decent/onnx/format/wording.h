#pragma once
// Small texts for messages and for the report.

#include <cstddef>
#include <string>
#include <string_view>

namespace decent::onnx {

/// The number of names in a line of the short report.
inline constexpr std::size_t kNamesInBrief = 3;

/// The text with a capital letter at the start, as in a sentence.
std::string capitalised(std::string_view text);

/// Advice on a file with operators or elements of a quantised model.
std::string quantised_advice();

}  // namespace decent::onnx
