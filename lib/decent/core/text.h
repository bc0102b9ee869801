#pragma once
// Small text helpers for messages.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// The candidate with the smallest edit distance (Damerau-Levenshtein, case-folded) to `word`, or
/// nothing if all are too far for a misspelling, more than max(1, word.size() / 3) edits. The first
/// candidate wins a tie.
std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string> candidates);

/// Whether a shell pattern matches the whole of `text`: * is any text, dots and slashes too, ? one
/// character; all else stands for itself.
bool glob_matches(std::string_view pattern, std::string_view text);

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// The first `most` of the names, and how many are left out: "a, b, c and 3 more".
std::string some_of(std::span<const std::string> names, std::size_t most);

/// A number of things as in a sentence: "1 worker", "3 workers". `several` is the plural if it does
/// not just add an s: counted(2, "class", "classes").
std::string counted(std::int64_t count, std::string_view one, std::string_view several = {});

/// The number for printf, fmt and std::to_string, which would show a NaN's meaningless sign as
/// "-nan" (on x86, 0/0 is negative).
double printable(double number);

/// The shortest decimal that reads back to the same bits.
std::string number_text(double number);

/// The number with three significant digits, as printf's %.3g: "0.00123", "1.2e-05".
std::string short_number_text(double number);

/// "9999", "10.2k", "1.5M".
std::string count_text(std::int64_t count);

/// "12 s", "0.3 s": a tenth of a second at the finest.
std::string seconds_text(std::chrono::duration<double> time);

/// Two hexadecimal digits a byte: "00ff".
std::string hex_text(std::span<const unsigned char> bytes);

/// A shape as users write it: "[32, 1, 8, 8]".
std::string shape_text(std::span<const std::int64_t> shape);

// Names that come from files.

/// `text` in quotes, on one line of bounded length, as valid UTF-8: text of more than 80 bytes is
/// cut and ends with "..", and control characters and broken UTF-8 become question marks.
std::string in_quotes(std::string_view text);

/// The same without the quotes, for names that appear in a sentence as they are.
std::string on_one_line(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace decent
