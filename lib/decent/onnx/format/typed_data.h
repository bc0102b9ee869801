#pragma once
// Elements in typed fields (float_data, int32_data, ..): which field holds which type, and in which
// form.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/format/wire.h"

namespace decent::onnx {

struct TypedField {
  std::uint32_t number = 0;  // in TensorProto
  std::string_view name;
  Number kind = Number::varint;
};

/// The field for elements of the type; number 0 for undefined.
TypedField typed_field_of(ElementType type);

/// "float_data" for 4, ..; "" for fields of TensorProto that hold no elements.
std::string_view name_of_data_field(std::uint32_t number);

/// Decodes the `count` elements of a TensorProto, whose fields must have been counted. Throws
/// UserError naming `tensor` if an element is outside the range of the type.
std::shared_ptr<const std::vector<std::byte>> decode_typed(const Message& message, ElementType type,
                                                           std::uint64_t count,
                                                           const std::string& tensor);

/// Writes the fields that hold a tensor's elements (in a TensorProto, or in an AttributeProto with
/// a list of floats) again, tags included, with the new elements at `elements`. Each field has the
/// form, packed or single, and the number of elements that it has in the file.
std::vector<std::string> encode_typed(Input& file, const Tensor& tensor,
                                      std::span<const std::byte> elements);

}  // namespace decent::onnx
