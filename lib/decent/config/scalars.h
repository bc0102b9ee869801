#pragma once
// Scalars: from a YAML value to a typed value and back. Reading is strict, printing is exact.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "decent/config/document.h"

namespace decent::config {

/// Nothing if the value is not a plain decimal integer of 64 bits.
std::optional<std::int64_t> to_integer(const Value& value);

/// Nothing if the value is not a plain finite decimal number that a double can hold.
std::optional<double> to_number(const Value& value);

/// true, True, TRUE, false, False, FALSE.
std::optional<bool> to_bool(const Value& value);

/// Any scalar, quoted or plain, that is not empty and holds no NUL.
std::optional<std::string> to_text(const Value& value);

/// `text` as a YAML scalar that reads back as the same text, with `${` escaped.
std::string scalar_text(std::string_view text);

/// The same for a key of a mapping, where `${` has no meaning.
std::string key_text(std::string_view text);

/// The value as a message shows it: 'abc', "3", null, [1, 2], a mapping.
std::string shown(const Value& value);

}  // namespace decent::config
