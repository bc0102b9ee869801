#pragma once
// Protocol Buffers' wire format, written.

#include <cstdint>
#include <string>
#include <string_view>

#include "decent/onnx/format/wire.h"

namespace decent::onnx {

void append_varint(std::string& to, std::uint64_t value);

void append_tag(std::string& to, std::uint32_t field, WireType type);

/// A field that is a number.
void append_number(std::string& to, std::uint32_t field, std::uint64_t value);

/// A field that is text or a message.
void append_bytes(std::string& to, std::uint32_t field, std::string_view content);

}  // namespace decent::onnx
