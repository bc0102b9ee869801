#pragma once
// Names that come from files, in messages.

#include <string>
#include <string_view>

namespace decent {

/// `text` in quotes, on one line of bounded length, as valid UTF-8: text of more than 80 bytes is
/// cut and ends with "..", and control characters and broken UTF-8 become question marks.
std::string in_quotes(std::string_view text);

/// The same without the quotes, for names that appear in a sentence as they are.
std::string on_one_line(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace decent
