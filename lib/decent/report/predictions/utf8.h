#pragma once
// Characters of texts that come from files.

#include <string>
#include <string_view>

namespace decent {

/// The characters of a text in UTF-8; a byte that is no part of one is U+FFFD.
std::u32string code_points(std::string_view text);

}  // namespace decent
