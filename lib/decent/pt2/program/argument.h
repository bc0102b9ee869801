#pragma once
// Arguments and results of an exported program's nodes: PyTorch's schema of exported programs,
// major version 8. The numbers of the enumerations are the file's. Nothing here needs LibTorch.
//
// Source: torch/_export/serde/schema.py of PyTorch 2.15, schema 8.20.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace decent::pt2 {

struct Graph;

/// Element types. The numbers are not those of c10::ScalarType.
enum class ScalarType : std::uint8_t {
  unknown = 0,
  uint8 = 1,
  int8 = 2,
  int16 = 3,
  int32 = 4,
  int64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  complex32 = 9,
  complex64 = 10,
  complex128 = 11,
  boolean = 12,
  bfloat16 = 13,
  uint16 = 28,
  float8_e4m3fn = 29,
  float8_e5m2 = 30,
  float8_e4m3fnuz = 31,
  float8_e5m2fnuz = 32,
  float8_e8m0fnu = 33,
  uint32 = 34,
  uint64 = 35,
};

/// "float32", "bool": PyTorch's name in Python, without "torch.".
std::string_view name_of(ScalarType type);
/// Bytes of an element; 0 for `unknown`.
std::uint64_t size_of(ScalarType type);
/// The type for a number in a file; nothing for an unknown number.
std::optional<ScalarType> find_scalar_type(std::int64_t number);

enum class Layout : std::uint8_t {
  unknown = 0,
  sparse_coo = 1,
  sparse_csr = 2,
  sparse_csc = 3,
  sparse_bsr = 4,
  sparse_bsc = 5,
  mkldnn = 6,
  strided = 7,
};

enum class MemoryFormat : std::uint8_t {
  unknown = 0,
  contiguous = 1,
  channels_last = 2,
  channels_last_3d = 3,
  preserve = 4,
};

struct Device {
  std::string type;  // "cpu", "cuda"
  std::optional<std::int64_t> index;
  bool operator==(const Device&) const = default;
};

// ---- kinds of arguments ----

struct None {
  bool operator==(const None&) const = default;
};

/// A tensor by its name in the graph.
struct TensorArgument {
  std::string name;
  bool operator==(const TensorArgument&) const = default;
};

/// A number: a value of the graph by its name, or a constant.
template <typename Number>
struct SymArgument {
  std::variant<std::string, Number> value;
  /// nullptr for a constant.
  const std::string* name() const { return std::get_if<std::string>(&value); }
  /// nullptr for a value of the graph.
  const Number* constant() const { return std::get_if<Number>(&value); }
  bool operator==(const SymArgument&) const = default;
};
using SymIntArgument = SymArgument<std::int64_t>;
using SymFloatArgument = SymArgument<double>;
using SymBoolArgument = SymArgument<bool>;

using OptionalTensor = std::optional<TensorArgument>;

/// The body of an operator of higher order, such as a branch of cond.
struct GraphArgument {
  std::string name;
  std::shared_ptr<const Graph> graph;  // never null
};

/// An object of a class that TorchScript knows, by its name in the graph.
struct CustomObjArgument {
  std::string name;
  std::string class_fqn;
};

/// An operator as a value: "torch.ops.aten.add.Tensor".
struct OperatorArgument {
  std::string target;
};

struct ComplexValue {
  double real = 0;
  double imag = 0;
};

struct NamedValue;

/// A dictionary, in the order of the file.
struct ArgumentDict {
  std::vector<NamedValue> entries;
};

/// One argument or result. The comments give the file's names. An as_optional_tensor is read as the
/// tensor or as None, and the texts "Infinity", "-Infinity" and "NaN", which a file has for these
/// numbers of Python, are read as doubles.
using Argument = std::variant<None,                         // as_none
                              TensorArgument,               // as_tensor, as_optional_tensor
                              std::vector<TensorArgument>,  // as_tensors
                              std::vector<OptionalTensor>,  // as_optional_tensors
                              std::vector<std::vector<TensorArgument>>,  // as_nested_tensors
                              std::int64_t,                              // as_int
                              std::vector<std::int64_t>,                 // as_ints
                              std::vector<std::vector<std::int64_t>>,    // as_int_lists
                              SymIntArgument,                            // as_sym_int
                              std::vector<SymIntArgument>,               // as_sym_ints
                              double,                                    // as_float
                              std::vector<double>,                       // as_floats
                              std::vector<std::vector<double>>,          // as_float_lists
                              SymFloatArgument,                          // as_sym_float
                              std::vector<SymFloatArgument>,             // as_sym_floats
                              bool,                                      // as_bool
                              std::vector<bool>,                         // as_bools
                              SymBoolArgument,                           // as_sym_bool
                              std::vector<SymBoolArgument>,              // as_sym_bools
                              ComplexValue,                              // as_complex
                              std::string,                               // as_string
                              std::vector<std::string>,                  // as_strings
                              ScalarType,                                // as_scalar_type
                              MemoryFormat,                              // as_memory_format
                              Layout,                                    // as_layout
                              Device,                                    // as_device
                              GraphArgument,                             // as_graph
                              CustomObjArgument,                         // as_custom_obj
                              OperatorArgument,                          // as_operator
                              ArgumentDict>;                             // as_string_to_argument

struct NamedValue {
  std::string name;
  Argument value;
};

}  // namespace decent::pt2
