#pragma once
// An ONNX model in memory: the messages of onnx.proto, as far as training needs them. Elements of
// tensors stay where they are, in memory-mapped files. Nothing here needs LibTorch.
//
// Source: onnx.proto of the onnx package, IR version 14.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "decent/core/file.h"

namespace decent::onnx {

/// TensorProto.DataType. Types that are missing here cannot be imported.
enum class ElementType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
};

/// Bytes of the model file: [begin, end), from the start of the file.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
};

/// How a file holds the elements of a tensor.
enum class Encoding {
  raw,       // raw_data
  typed,     // float_data, int32_data, ..: packed or one by one, perhaps in several pieces
  external,  // another file
};

/// TensorProto. Already checked: dims are >= 0, and their product does not overflow and agrees with
/// the data.
struct Tensor {
  std::string name;
  ElementType type = ElementType::undefined;
  std::vector<std::int64_t> dims;
  Encoding encoding = Encoding::raw;
  /// raw, external: the elements, little-endian and row-major, in a mapped file.
  std::span<const std::byte> bytes;
  /// typed: decoded, as raw_data would hold them (shared, as tensors are copied about).
  std::shared_ptr<const std::vector<std::byte>> decoded;
  /// The places in the model file of the fields that hold the elements (raw, typed) or that say
  /// where they are (external: the external_data entries), tags included.
  std::vector<ByteRange> fields;
  /// external: the file, inside the model's folder, and where in it.
  std::string location;
  std::uint64_t offset = 0;
  /// Whether it was a number in the code of a model that PyTorch exported, and so is no parameter:
  /// a Constant node of such a file (hoist_constants.h).
  bool is_literal = false;

  /// The elements, little-endian and row-major, whatever the encoding.
  std::span<const std::byte> elements() const { return decoded ? std::span(*decoded) : bytes; }
  /// The number of elements; 1 for a scalar.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t dim : dims) product *= dim;
    return product;
  }
};

/// Names of a node's inputs or outputs, in order. A file leaves out an optional one by an empty
/// name or by ending the list before it. Both read as "" here, so that any index may be used.
class NameList {
 public:
  using value_type = std::string;
  using const_iterator = std::vector<std::string>::const_iterator;

  NameList() = default;
  NameList(std::initializer_list<std::string> names) : names_(names) {}
  NameList(std::vector<std::string> names) : names_(std::move(names)) {}

  const std::string& operator[](std::size_t place) const {
    static const std::string left_out;
    return place < names_.size() ? names_[place] : left_out;
  }
  const std::string& front() const { return (*this)[0]; }
  /// The last name that the file lists.
  const std::string& back() const { return (*this)[names_.size() - 1]; }
  std::size_t size() const { return names_.size(); }
  bool empty() const { return names_.empty(); }
  auto begin() const { return names_.begin(); }
  auto end() const { return names_.end(); }
  auto begin() { return names_.begin(); }
  auto end() { return names_.end(); }

  void push_back(std::string name) { names_.push_back(std::move(name)); }
  void reserve(std::size_t count) { names_.reserve(count); }
  bool operator==(const NameList&) const = default;

 private:
  std::vector<std::string> names_;
};

struct Graph;

/// AttributeProto: a value, or the name of an attribute of the function that contains it. Neither
/// (monostate) if it holds a type (TypeProto), as in the operator Optional.
struct Attribute {
  using Value = std::variant<std::monostate, float, std::int64_t, std::string, Tensor,
                             std::shared_ptr<Graph>, std::vector<float>, std::vector<std::int64_t>,
                             std::vector<std::string>, std::vector<Tensor>>;
  std::string name;
  std::string ref_attr_name;  // inside functions only
  Value value;
  ByteRange field;                       // tag included
  std::vector<ByteRange> number_fields;  // the fields of a list of floats, tags included
};

struct Node {
  std::string name;    // may be empty
  std::string domain;  // "" is ai.onnx
  std::string op_type;
  std::string overload;
  NameList inputs;
  NameList outputs;
  std::vector<Attribute> attributes;
  std::map<std::string, std::string> metadata;
  ByteRange field;                      // tag included
  std::vector<ByteRange> input_fields;  // of the names above, tags included
  std::vector<ByteRange> output_fields;
  std::int64_t opset = 0;  // version of the node's operators; 0: the model's. Set where a function
                           // of the model is put in place of its call

  const Attribute* find(std::string_view attribute) const {
    for (const Attribute& each : attributes) {
      if (each.name == attribute) return &each;
    }
    return nullptr;
  }
};

/// A dimension of a declared shape: a number, a name, or neither. Negative numbers, which some
/// exporters write for a free dimension, count as neither.
struct Dimension {
  std::optional<std::int64_t> value;
  std::string parameter;
};

/// ValueInfoProto.
struct ValueInfo {
  enum class Kind { tensor, sequence, other };
  std::string name;
  Kind kind = Kind::tensor;
  ElementType type = ElementType::undefined;  // of the tensor, or of the tensors in the sequence
  std::optional<std::vector<Dimension>> shape;
  std::map<std::string, std::string> metadata;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs;  // without inputs that an initializer gives (IR version 3)
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;
  std::map<std::string, std::string> metadata;
  ByteRange field;
};

/// FunctionProto: a function that the model defines.
struct Function {
  std::string domain;
  std::string name;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;  // without defaults
  std::vector<Attribute> default_attributes;
  std::vector<Node> nodes;
  std::map<std::string, std::int64_t> opsets;
};

/// ModelProto with the files that contain its elements.
struct Model {
  std::filesystem::path path;
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  // domain ("" is ai.onnx) -> version
  std::string producer_name;
  std::string producer_version;
  std::map<std::string, std::string> metadata;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::shared_ptr<const MappedFile>> files;  // the model file first

  /// Version of the standard operators.
  std::int64_t opset() const {
    const auto found = opsets.find("");
    return found == opsets.end() ? 1 : found->second;
  }
};

}  // namespace decent::onnx
