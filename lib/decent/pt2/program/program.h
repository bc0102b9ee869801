#pragma once
// An exported program in memory: the content of torch.export.save's file, as far as training needs
// it. The bytes of tensors stay in the mapped archive. Nothing here needs LibTorch.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "decent/pt2/program/argument.h"

namespace decent::pt2 {

template <typename Value>
using ByName = std::map<std::string, Value, std::less<>>;

/// A number that was known when the program was exported, or an expression of symbols.
template <typename Number>
struct SymValue {
  std::optional<Number> value;  // nothing for an expression
  std::string expression;       // sympy's: "Symbol('s77', positive=True, integer=True)"
  std::optional<Number> hint;   // of an expression: its value for the example inputs
};
using SymInt = SymValue<std::int64_t>;
using SymFloat = SymValue<double>;
using SymBool = SymValue<bool>;

/// The symbol of an expression that is a single symbol: "s77"; nothing for numbers and other
/// expressions. ExportedProgram::range_constraints has its bounds.
std::optional<std::string> symbol_of(const SymInt& number);

struct TensorMeta {
  ScalarType dtype = ScalarType::unknown;
  std::vector<SymInt> sizes;
  std::vector<SymInt> strides;
  SymInt storage_offset;
  Device device;
  Layout layout = Layout::strided;
  bool requires_grad = false;
};

/// "[s77, 3]", with the export's symbols for free dimensions.
std::string declared_text(const TensorMeta& meta);

// ---- graph ----

struct NamedArgument {
  enum class Kind { unknown, positional, keyword };
  std::string name;  // in the operator's schema
  Argument value;
  Kind kind = Kind::unknown;
};

struct Node {
  std::string target;  // "torch.ops.aten.linear.default", "_operator.mul",
                       // "torch.ops.higher_order.cond"
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  ByName<std::string> metadata;  // "stack_trace", "nn_module_stack", "torch_fn", ..
  std::string name;              // "" in files of older versions
  std::optional<bool> is_hop_single_tensor_return;
  std::size_t place = 0;  // in its graph, from 0

  /// nullptr if there is no input of that name.
  const Argument* find(std::string_view input) const {
    for (const NamedArgument& each : inputs) {
      if (each.name == input) return &each.value;
    }
    return nullptr;
  }
};

/// Already checked: each value is made once, by an input or by a node, and before it is used.
struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  ByName<TensorMeta> tensor_values;
  ByName<SymInt> sym_int_values;
  ByName<SymFloat> sym_float_values;
  ByName<SymBool> sym_bool_values;
  ByName<CustomObjArgument> custom_obj_values;
  bool is_single_tensor_return = false;  // of an inner graph: one tensor, not a tuple of one
};

// ---- signature: one InputSpec for each input of the graph, in order, and the same for the outputs
// ----

struct UserInput {
  Argument arg;
};
struct ParameterInput {
  std::string arg;  // in the graph: "p_l_weight"
  std::string parameter_name;
};
struct BufferInput {
  std::string arg;
  std::string buffer_name;
  bool persistent = true;  // a persistent one is among the weights, others among the constants
};
struct TensorConstantInput {
  std::string arg;
  std::string tensor_constant_name;
};
struct CustomObjInput {
  std::string arg;
  std::string custom_obj_name;
};
struct TokenInput {
  std::string arg;
};
/// An argument that was no tensor when the program was exported, and so is fixed.
struct ConstantInput {
  std::string name;
  std::variant<None, bool, std::int64_t, double, std::string> value;
};
using InputSpec = std::variant<UserInput, ParameterInput, BufferInput, TensorConstantInput,
                               CustomObjInput, TokenInput, ConstantInput>;

struct UserOutput {
  Argument arg;
};
struct LossOutput {
  std::string arg;
};
struct BufferMutation {
  std::string arg;
  std::string buffer_name;
};
struct ParameterMutation {
  std::string arg;
  std::string parameter_name;
};
struct GradientToParameter {
  std::string arg;
  std::string parameter_name;
};
struct GradientToUserInput {
  std::string arg;
  std::string user_input_name;
};
struct UserInputMutation {
  std::string arg;
  std::string user_input_name;
};
struct TokenOutput {
  std::string arg;
};
using OutputSpec =
    std::variant<UserOutput, LossOutput, BufferMutation, ParameterMutation, GradientToParameter,
                 GradientToUserInput, UserInputMutation, TokenOutput>;

// ---- weights and constants ----

/// The elements of a storage from a tensor's first one to one past its last, gaps included.
struct StorageRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A tensor of the archive: a view of a record, which holds the bytes of its whole storage. Several
/// tensors may be views of one record; tensors with equal record, dtype, sizes, strides and
/// storage_offset are tied weights. Already checked: the view lies inside of the record.
struct Payload {
  std::string record;                  // "data/weights/weight_0"
  std::span<const std::byte> storage;  // in the mapped archive
  std::uint64_t offset = 0;            // of the storage in the archive's file
  ScalarType dtype = ScalarType::unknown;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t storage_offset = 0;  // in elements
  bool is_param = false;
  bool requires_grad = false;

  /// The number of elements; 1 for a scalar.
  std::int64_t count() const;
  /// The range of the elements in the storage; empty for a tensor without elements.
  StorageRange range() const;
  /// Whether the elements are in order and without gaps (sizes of 1 may have any stride).
  bool is_contiguous() const;
  /// Whether it is the same view of the same record, as tied weights are.
  bool is_same_view(const Payload& other) const;
};

// ---- the structure of Python's nested arguments and results, which torch.utils._pytree calls a
// TreeSpec ----

/// A key of a dictionary, or the name of a field.
using TreeKey = std::variant<std::string, std::int64_t, bool>;

/// A leaf is one argument or result of the graph, in order from left to right.
struct TreeSpec {
  enum class Kind {
    leaf,
    tuple,
    list,
    dict,    // also OrderedDict and defaultdict
    fields,  // a named tuple, a dataclass, a ModelOutput: named, not a dictionary
    other,   // a type whose context has no names
  };
  Kind kind = Kind::leaf;
  std::string type;           // "builtins.dict", "transformers.modeling_outputs.BaseModelOutput"
  std::vector<TreeKey> keys;  // dict, fields: one for each child
  std::string context;        // the file's JSON about the type
  std::vector<TreeSpec> children;

  std::size_t leaves() const;
};

// ---- program ----

struct RangeConstraint {
  std::optional<std::int64_t> min_value;
  std::optional<std::int64_t> max_value;
};

struct SchemaVersion {
  std::int64_t major = 0;
  std::int64_t minor = 0;
};

struct ExportedProgram {
  std::string name;  // "model"; "train" and "eval" in a package of two
  Graph graph;
  std::vector<InputSpec> input_specs;
  std::vector<OutputSpec> output_specs;
  TreeSpec in_spec;   // of the tuple (args, kwargs); its leaves are the user and constant inputs
  TreeSpec out_spec;  // its leaves are the user outputs
  std::vector<std::string> forward_arg_names;  // empty if the file does not have them
  ByName<RangeConstraint> range_constraints;   // of symbols: "s77"
  ByName<std::int64_t> opset_version;          // "aten" -> 10
  SchemaVersion schema_version;
  std::vector<std::string> verifiers;  // "TRAINING" as torch.export.export gives it, "ATEN" after
                                       // run_decompositions
  std::string torch_version;
  ByName<Payload> weights;    // parameters and persistent buffers
  ByName<Payload> constants;  // lifted constants and other buffers
};

}  // namespace decent::pt2
