#pragma once
// Writes Protocol Buffers' wire format.

#include <cstdint>
#include <string>
#include <string_view>

#include "decent/onnx/format/wire.h"

namespace decent::onnx {

void append_varint(std::string& to, std::uint64_t value);

void append_tag(std::string& to, std::uint32_t field, WireType type);

/// Appends a field with a number.
void append_number(std::string& to, std::uint32_t field, std::uint64_t value);

/// Appends a field with text or a message.
void append_bytes(std::string& to, std::uint32_t field, std::string_view content);

}  // namespace decent::onnx
