#pragma once
// ONNX files written by hand, field by field, for tests: each function gives the bytes of a field
// or of a message. Field numbers are those of onnx.proto.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace decent::onnx::file_bytes {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 0x7F; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7F));
  return bytes + static_cast<char>(value);
}

inline std::string number(int field, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}

inline std::string bytes(int field, std::string_view content) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(content.size()) +
         std::string(content);
}

/// The bytes of numbers, little-endian.
template <typename T>
std::string raw(std::initializer_list<T> values) {
  std::string all(values.size() * sizeof(T), '\0');
  std::memcpy(all.data(), std::data(values), all.size());
  return all;
}

inline std::string real(int field, float value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 5) + raw({value});
}

/// Numbers packed into one field.
inline std::string packed(int field, std::initializer_list<std::int64_t> values) {
  std::string all;
  for (const std::int64_t value : values) all += varint(static_cast<std::uint64_t>(value));
  return bytes(field, all);
}

/// TensorProto; `data` is the field that holds the elements.
inline std::string tensor(std::string_view name, int type, std::initializer_list<std::int64_t> dims,
                          std::string_view data = "") {
  std::string all;
  for (const std::int64_t dim : dims) all += number(1, dim);
  return all + number(2, type) + std::string(data) + (name.empty() ? "" : bytes(8, name));
}

/// StringStringEntryProto.
inline std::string entry(std::string_view key, std::string_view value) {
  return bytes(1, key) + bytes(2, value);
}

/// The fields of a TensorProto whose elements lie in another file.
inline std::string external(std::string_view location, std::string_view offset = "",
                            std::string_view length = "") {
  std::string all = bytes(13, entry("location", location));
  if (!offset.empty()) all += bytes(13, entry("offset", offset));
  if (!length.empty()) all += bytes(13, entry("length", length));
  return all + number(14, 1);
}

/// ValueInfoProto of a tensor without a shape.
inline std::string value(std::string_view name, int type = 1) {
  return bytes(1, name) + bytes(2, bytes(1, number(1, type)));
}

using Names = std::initializer_list<std::string_view>;

/// NodeProto; `more` are other fields.
inline std::string node(std::string_view op_type, Names inputs, Names outputs,
                        std::string_view more = "") {
  std::string all;
  for (const std::string_view name : inputs) all += bytes(1, name);
  for (const std::string_view name : outputs) all += bytes(2, name);
  return all + bytes(4, op_type) + std::string(more);
}

/// A field of NodeProto: an attribute that is an int, a graph, ..
inline std::string int_attribute(std::string_view name, std::int64_t value) {
  return bytes(5, bytes(1, name) + number(3, value) + number(20, 2));
}
inline std::string graph_attribute(std::string_view name, std::string_view graph) {
  return bytes(5, bytes(1, name) + bytes(6, graph) + number(20, 5));
}
inline std::string tensor_attribute(std::string_view name, std::string_view tensor) {
  return bytes(5, bytes(1, name) + bytes(5, tensor) + number(20, 4));
}

/// Fields of GraphProto.
inline std::string node_field(std::string_view node) { return bytes(1, node); }
inline std::string initializer(std::string_view tensor) { return bytes(5, tensor); }
inline std::string input(std::string_view name) { return bytes(11, value(name)); }
inline std::string output(std::string_view name) { return bytes(12, value(name)); }

/// ModelProto of a graph's fields; `more` are other fields.
inline std::string model_bytes(std::string_view graph, int opset = 17, std::string_view more = "",
                               int ir_version = 8) {
  return number(1, ir_version) + bytes(7, graph) + bytes(8, number(2, opset)) + std::string(more);
}

/// The smallest: x -> Relu -> y, with other fields of the graph.
inline std::string relu(std::string_view more = "") {
  return std::string(more) + input("x") + output("y") + node_field(node("Relu", {"x"}, {"y"}));
}

}  // namespace decent::onnx::file_bytes
