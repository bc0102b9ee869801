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

/// What becomes of a tensor of the file.
enum class Role {
  trainable,  // a parameter
  buffer,     // running statistics of batch normalization
  constant,   // neither
  ambiguous,  // could be a weight or a table: a constant, unless model.unfreeze names it
};

/// Whether the module has the tensor, as a parameter or a buffer.
constexpr bool is_kept(Role role) { return role == Role::trainable || role == Role::buffer; }

/// The reason where the file itself says that a tensor is a parameter.
inline constexpr std::string_view kParameterReason = "a parameter of the exported model";

struct Classified {
  Role role = Role::constant;
  std::string name;                // in the module: as in the file, where that can be
  std::string reason;              // "weight of Conv", "only added to, and called 'onnx::Add_12'"
  const Tensor* tensor = nullptr;  // that has its elements in the file
};

struct Classification {
  /// Every initializer of the graph and of the graphs inside it.
  std::map<const Tensor*, Classified> initializers;
  /// Identity nodes that hand on a weight under a name of its own, in order: PyTorch's exporters
  /// write so what was a separate tensor of equal value. Each has a role of its own.
  std::map<const Node*, Classified> own;
};

/// Classifies by the rule of docs/onnx.md; `unfreeze`, globs over names, adds to what is trainable.
/// Throws UserError where a glob matches nothing that can be trained.
Classification classify(const Graph& graph, std::span<const std::string> unfreeze);

}  // namespace decent::onnx
