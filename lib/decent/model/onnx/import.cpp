#include "decent/model/onnx/import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/model/onnx/module.h"
#include "decent/model/reason.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/graph/hoist_constants.h"
#include "decent/onnx/graph/inline_functions.h"
#include "decent/onnx/graph/uses.h"

namespace decent {
namespace {

bool trains_halves(const onnx::Classification& classification) {
  return std::any_of(classification.initializers.begin(), classification.initializers.end(),
                     [](const auto& entry) {
                       return entry.second.role == onnx::Role::trainable &&
                              onnx::is_half(entry.first->type);
                     });
}

// The name of the output that the recipe chooses by name or index, or of the only output;
// select_output reports wrong choices.
std::optional<std::string> output_name(const onnx::Graph& graph,
                                       const std::optional<std::string>& choice) {
  const std::vector<onnx::ValueInfo>& outputs = graph.outputs;
  if (!choice) return outputs.size() == 1 ? std::optional(outputs.front().name) : std::nullopt;
  for (const onnx::ValueInfo& output : outputs) {
    if (output.name == *choice) return output.name;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (std::to_string(i) == *choice) return outputs[i].name;
  }
  return std::nullopt;
}

// Probabilities at the graph's end, if the loss computes probabilities itself.
std::optional<onnx::ProbabilityEnd> unwanted_probabilities(onnx::Graph& graph,
                                                           const std::optional<std::string>& output,
                                                           LossActivation activation) {
  if (!output || activation == LossActivation::none) return std::nullopt;
  std::optional<onnx::ProbabilityEnd> end = onnx::find_probabilities(graph, *output);
  if (end && end->is_sigmoid && activation == LossActivation::softmax) return std::nullopt;
  // A softmax cannot be replaced by the sigmoid of the same logits.
  if (end && !end->is_sigmoid && activation == LossActivation::sigmoid) end->logits.clear();
  return end;
}

onnx::Translation translated(const OnnxImport& import) {
  onnx::TranslationOptions options;
  options.widen_halves = trains_halves(import.classification);
  options.evaluate = evaluate_module;
  options.output = import.output;
  if (import.probabilities) options.logits = import.probabilities->logits;
  return onnx::translate(*import.model, import.classification, options);
}

void leave_out(std::vector<std::pair<std::string, std::string>> outputs, OnnxImport& import) {
  auto model = std::make_shared<onnx::Model>(*import.model);
  std::set<std::string> kept;
  for (const onnx::ValueInfo& output : model->graph.outputs) kept.insert(output.name);
  for (const auto& [name, reason] : outputs) kept.erase(name);
  onnx::keep_outputs(model->graph, kept);
  import.model = std::move(model);
  import.left_out = std::move(outputs);
}

void classify_and_translate(OnnxImport& import, std::span<const std::string> unfreeze) {
  import.classification = onnx::classify(import.model->graph, unfreeze);
  import.translation = translated(import);
}

}  // namespace

OnnxImport import_onnx(const std::filesystem::path& path, const ImportOptions& options) {
  OnnxImport result;
  result.file = std::make_shared<const onnx::Model>(onnx::read_model(path));
  result.output = output_name(result.file->graph, options.output);
  auto model = std::make_shared<onnx::Model>(onnx::inline_functions(*result.file));
  onnx::hoist_constants(*model);
  result.patterns = onnx::recognise_patterns(model->graph, model->opset(), &result.masks);
  if (model->producer_name == "tf2onnx") {
    const std::size_t layers = onnx::hold_second_biases(model->graph);
    if (layers != 0) result.patterns["recurrent layer of one bias"] = layers;
  }
  result.probabilities = unwanted_probabilities(model->graph, result.output, options.activation);
  result.model = std::move(model);
  classify_and_translate(result, options.unfreeze);
  if (!result.translation.impossible.empty()) {
    leave_out(std::move(result.translation.impossible), result);
    classify_and_translate(result, options.unfreeze);
  }
  try {
    result.module = make_module(result.translation.module);
  } catch (const std::exception& error) {
    throw UserError("model '" + path.string() +
                    "' cannot be imported: what its graph translates to does not compile, since "
                    "types of its values do not fit together: " +
                    reason_of(error));
  }
  // The module has copies of its own.
  result.translation.module.parameters.clear();
  result.translation.module.buffers.clear();
  result.translation.module.constants.clear();
  return result;
}

}  // namespace decent
