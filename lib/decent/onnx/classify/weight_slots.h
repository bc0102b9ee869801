#pragma once
// What operators do with their inputs, as far as this distinguishes weights from constants, and the
// names in the module of a file's tensors.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// What an operator uses an input for.
enum class Slot {
  weight,      // only used by modules as a weight: Conv, MatMul, LayerNormalization ..
  statistics,  // running mean or variance of BatchNormalization
  arithmetic,  // added or multiplied: a weight or a constant
  scaling,     // subtracted or a divisor: statistics of the data rather than a weight
  function,    // of a function of its elements or size, which modules often apply to parameters
  view,        // the outputs hold the input's elements: look further
  shape,       // only the input's shape is read
  other,
};

Slot slot_of(const Node& node, std::size_t input);

/// The module's usual name for a tensor in that place: "weight", "bias", "weight_hh".
std::string_view member_name(const Node& node, std::size_t input);

/// Whether a name looks as if a person had named a module's tensor ("conv1.weight"), not as if an
/// exporter had numbered it ("onnx::MatMul_12", "/fc/Constant", "val_5", "27").
bool is_module_name(std::string_view name);

/// Whether a name says that TensorFlow read the tensor from a variable
/// ("gru/gru_cell/split/ReadVariableOp:0").
bool is_variable_of_tensorflow(std::string_view name);

/// The module from which a node was exported, "encoder.fc", or "" if the file does not tell.
/// Dynamo's exporter writes it as metadata, the legacy one into the node's name.
std::string module_of(const Node& node);

/// Names of tensors in one module: unique, and no tensor's name is a folder of another's.
class TensorNames {
 public:
  /// `name`, cleaned and made unique.
  std::string make(std::string_view name);
  /// The name itself if it is free; else "".
  std::string try_make(std::string_view name);

 private:
  bool is_free(const std::string& path) const;
  void take(const std::string& path);

  std::set<std::string, std::less<>> tensors_;
  std::set<std::string, std::less<>> folders_;
};

}  // namespace decent::onnx
