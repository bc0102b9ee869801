#pragma once
// An ONNX graph as one TorchScript module: source text that a person can read, and the tensors that
// it refers to. Nothing here needs LibTorch; model/onnx/module.h makes the module.

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
  /// Whether forward gives logits where the module's attribute kGivesLogits is true.
  bool may_give_logits = false;
  /// What "CONSTANTS.<name>" stands for.
  std::map<std::string, std::shared_ptr<const Tensor>> constants;
};

/// A switch of the module, as `training` is one: false in a module that is saved.
inline constexpr const char* kGivesLogits = "gives_logits";

/// One node that training goes through, for the search of paths for gradients.
struct GradientStep {
  std::string node;  // how messages name it
  std::string op_type;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  bool flows = true;  // whether a gradient passes
};

struct Translation {
  ModuleSource module;
  /// Names of the graph's inputs and the arguments of forward that they are.
  std::vector<std::pair<std::string, std::string>> arguments;
  /// Names of the graph's outputs, in order; forward returns a tensor where there is one, else a
  /// dictionary.
  std::vector<std::string> outputs;
  /// Outputs that need what cannot be imported, and why; of an unfinished translation, with nothing
  /// else in it: they are to be taken out of the graph (keep_outputs.h).
  std::vector<std::pair<std::string, std::string>> impossible;
  /// Operators of the graph after folding, with their numbers.
  std::map<std::string, std::size_t> operators;
  std::size_t nodes = 0;         // in the file, functions put in place of their calls
  std::size_t folded_nodes = 0;  // computed once, at import
  std::vector<GradientStep> steps;
  std::vector<std::string> notes;  // for the report
};

/// How the note on a node ends whose random numbers no mode switches off.
inline constexpr std::string_view kDrawsInEvaluation =
    "draws random numbers when the model is evaluated, too";

/// Runs forward() of a module without inputs and gives the tensors it returns: for parts of the
/// graph that are the same in every run. Throws where it fails.
using Evaluate = std::function<std::vector<Tensor>(const ModuleSource& source)>;

struct TranslationOptions {
  /// Compute in float32 what the file has in float16 or bfloat16.
  bool widen_halves = false;
  /// Without one, nothing is folded but arithmetic on shapes.
  Evaluate evaluate;
  /// The output that is used; others need not be possible. Without one, all are wanted.
  std::optional<std::string> output;
  /// The value that forward gives as `output` where it is to give logits; "" where it never does.
  std::string logits;
};

/// Translates `model`, whose functions are inlined. Throws UserError listing every node that cannot
/// be translated.
Translation translate(const Model& model, const Classification& classification,
                      const TranslationOptions& options);

}  // namespace decent::onnx
