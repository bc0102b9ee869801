#include "decent/onnx/format/wire_write.h"

namespace decent::onnx {

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void append_tag(std::string& to, std::uint32_t field, WireType type) {
  append_varint(to, field << 3 | static_cast<std::uint32_t>(type));
}

void append_number(std::string& to, std::uint32_t field, std::uint64_t value) {
  append_tag(to, field, WireType::varint);
  append_varint(to, value);
}

void append_bytes(std::string& to, std::uint32_t field, std::string_view content) {
  append_tag(to, field, WireType::bytes);
  append_varint(to, content.size());
  to += content;
}

}  // namespace decent::onnx
