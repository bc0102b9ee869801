#pragma once
// An ONNX graph as one TorchScript module: source text that a person can read, and the tensors to
// which it refers. Nothing here needs LibTorch; model/onnx/module.h makes the module.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/classify/classify.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// A tensor under its name in the module, e.g. "layer1.0.conv1.weight".
struct NamedTensor {
  std::string name;
  std::shared_ptr<const Tensor> tensor;
};

struct ModuleSource {
  /// Methods of the module, forward last.
  std::string methods;
  std::vector<NamedTensor> parameters;  // in the order of the file
  std::vector<NamedTensor> buffers;
  /// Whether forward gives logits if the module's attribute kGivesLogits is true.
  bool may_give_logits = false;
  /// The value of "CONSTANTS.<name>".
  std::map<std::string, std::shared_ptr<const Tensor>> constants;
};

/// A switch of the module, like `training`: false in a module that is saved.
inline constexpr const char* kGivesLogits = "gives_logits";

/// One node of the graph, for the search of paths for gradients.
struct GradientStep {
  std::string node;  // its name in messages
  std::string op_type;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  bool flows = true;  // whether a gradient passes
};

struct Translation {
  ModuleSource module;
  /// The names of the graph's inputs and of forward's arguments for them.
  std::vector<std::pair<std::string, std::string>> arguments;
  /// The names of the graph's outputs, in order; forward returns a tensor if there is only one,
  /// else a dictionary.
  std::vector<std::string> outputs;
  /// Outputs that need something that cannot be imported, and why. If there are any, the
  /// translation is unfinished and empty otherwise, and the caller must remove these outputs from
  /// the graph (keep_outputs()).
  std::vector<std::pair<std::string, std::string>> impossible;
  /// The operators of the graph after folding, with their numbers.
  std::map<std::string, std::size_t> operators;
  std::size_t nodes = 0;         // in the file, after inlining functions
  std::size_t folded_nodes = 0;  // computed once, at import
  std::vector<GradientStep> steps;
  std::vector<std::string> notes;  // for the report
};

/// The end of a note on a node whose random numbers no mode switches off.
inline constexpr std::string_view kDrawsInEvaluation =
    "draws random numbers when the model is evaluated, too";

/// Runs forward() of a module without inputs and returns its tensors, for parts of the graph that
/// are the same in every run. Throws if it fails.
using Evaluate = std::function<std::vector<Tensor>(const ModuleSource& source)>;

struct TranslationOptions {
  /// Computes in float32 where the file has float16 or bfloat16.
  bool widen_halves = false;
  /// Without it, only arithmetic on shapes is folded.
  Evaluate evaluate;
  /// The output that is used; others need not be possible. Without it, all outputs are required.
  std::optional<std::string> output;
  /// The value that forward returns as `output` when it gives logits; "" if it never does.
  std::string logits;
};

/// Translates `model`, whose functions must be inlined. Throws UserError that lists every node that
/// cannot be translated.
Translation translate(const Model& model, const Classification& classification,
                      const TranslationOptions& options);

}  // namespace decent::onnx
