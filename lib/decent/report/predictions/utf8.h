#pragma once
// The characters of texts from files.

#include <string>
#include <string_view>

namespace decent {

/// The characters of a text in UTF-8; a byte that is not part of a character becomes U+FFFD.
std::u32string code_points(std::string_view text);

}  // namespace decent
