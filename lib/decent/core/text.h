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
/// nothing where all are too far to be a misspelling: more than max(1, word.size() / 3) edits. The
/// first of equals.
std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string> candidates);

/// Whether a shell pattern matches the whole of `text`: * is any text, dots and slashes too, ? one
/// character; all else stands for itself.
bool glob_matches(std::string_view pattern, std::string_view text);

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// "12 s", "0.3 s": a tenth of a second at the finest.
std::string seconds_text(std::chrono::duration<double> time);

/// A shape as users write it: "[32, 1, 8, 8]".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace decent
