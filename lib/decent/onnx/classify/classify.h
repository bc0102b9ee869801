#pragma once
// Which tensors of an ONNX file are weights to train. The file does not say: exporters write
// weights, statistics, masks and tables alike.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// What a tensor of the file becomes.
enum class Role {
  trainable,  // a parameter
  buffer,     // running statistics of batch normalization
  constant,   // neither
  ambiguous,  // could be a weight or a table: a constant, unless model.unfreeze names it
};

/// Whether the module keeps the tensor, as a parameter or a buffer.
constexpr bool is_kept(Role role) { return role == Role::trainable || role == Role::buffer; }

/// The reason if the file itself says that a tensor is a parameter.
inline constexpr std::string_view kParameterReason = "a parameter of the exported model";

struct Classified {
  Role role = Role::constant;
  std::string name;                // in the module: as in the file if possible
  std::string reason;              // "weight of Conv", "only added to, and called 'onnx::Add_12'"
  const Tensor* tensor = nullptr;  // the tensor of the file that has the elements
};

struct Classification {
  /// Every initializer of the graph and of the graphs inside it.
  std::map<const Tensor*, Classified> initializers;
  /// Identity nodes that pass on a weight under a name of its own, in order. PyTorch's exporters
  /// write them for separate tensors of equal value. Each has a role of its own.
  std::map<const Node*, Classified> own;
};

/// Classifies by the rule of docs/onnx.md. `unfreeze`, globs over names, makes more tensors
/// trainable. Throws UserError if a glob matches nothing that can be trained.
Classification classify(const Graph& graph, std::span<const std::string> unfreeze);

}  // namespace decent::onnx
