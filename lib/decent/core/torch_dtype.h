#pragma once
// Converts between element types of files and of tensors. The only header of this room that
// includes LibTorch's, for rooms that link LibTorch anyway.

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "decent/core/dtype.h"
#include "decent/core/error.h"

namespace decent {

/// PyTorch's name for an element type.
inline c10::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return c10::ScalarType::Bool;
    case DType::uint8:
      return c10::ScalarType::Byte;
    case DType::int8:
      return c10::ScalarType::Char;
    case DType::int16:
      return c10::ScalarType::Short;
    case DType::int32:
      return c10::ScalarType::Int;
    case DType::int64:
      return c10::ScalarType::Long;
    case DType::float16:
      return c10::ScalarType::Half;
    case DType::bfloat16:
      return c10::ScalarType::BFloat16;
    case DType::float32:
      return c10::ScalarType::Float;
    case DType::float64:
      return c10::ScalarType::Double;
  }
  __builtin_unreachable();
}

/// The inverse; nothing for element types that files cannot hold (complex, quantized, ..).
inline std::optional<DType> find_dtype(c10::ScalarType type) {
  for (int i = 0; i <= static_cast<int>(DType::float64); ++i) {
    if (scalar_type(static_cast<DType>(i)) == type) return static_cast<DType>(i);
  }
  return std::nullopt;
}

/// The same, but throws UserError for such types.
inline DType dtype_of(c10::ScalarType type) {
  if (const auto dtype = find_dtype(type)) return *dtype;
  throw UserError(std::string("tensors of ") + c10::toString(type) + " cannot be stored in files");
}

/// "float32", as Python's PyTorch says it, for messages.
inline std::string dtype_text(c10::ScalarType type) {
  const auto dtype = find_dtype(type);
  if (type == c10::ScalarType::ComplexFloat) return "complex64";
  if (type == c10::ScalarType::ComplexDouble) return "complex128";
  return dtype ? std::string(name_of(*dtype)) : c10::toString(type);
}

}  // namespace decent
