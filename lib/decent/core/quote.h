#pragma once
// Names that come from files, in messages.

#include <string>
#include <string_view>

namespace decent {

/// `text` in quotes, on one line of bounded length, as valid UTF-8: what is longer than 80 bytes is
/// cut and ends with "..", control characters and broken UTF-8 are question marks.
std::string in_quotes(std::string_view text);

/// The same without the quotes, for names that stand in a sentence as they are.
std::string on_one_line(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace decent
