#pragma once
// The element types of ONNX: their sizes and names.

#include <cstdint>
#include <string>
#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Bytes of an element; 0 for string and undefined.
std::uint64_t size_of(ElementType type);

/// "float32", "int64", ..
std::string name_of(ElementType type);

/// The type for a number in a file; undefined for 0 and for types that are not imported.
ElementType element_type(std::int64_t number);

/// The name of any number: "float8e4m3fn", "the unknown type 99".
std::string name_of_number(std::int64_t number);

/// "type complex64; those that are read are float32, ..", for a number that element_type() does not
/// take, with advice for the types of quantised models.
std::string refused_type_text(std::int64_t number);

}  // namespace decent::onnx
