#include "decent/model/onnx/import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/model/onnx/module.h"
#include "decent/model/reason.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/wording.h"
#include "decent/onnx/graph/hoist_constants.h"
#include "decent/onnx/graph/inline_functions.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/report/gradient_paths.h"
#include "decent/onnx/translate/keep_outputs.h"

namespace decent {
namespace {

bool trains_halves(const onnx::Classification& classification) {
  return std::any_of(classification.initializers.begin(), classification.initializers.end(),
                     [](const auto& entry) {
                       return entry.second.role == onnx::Role::trainable &&
                              onnx::is_half(entry.first->type);
                     });
}

// The name of the output that the recipe gives by name or index, or of the only one;
// select_output finds wrong ones.
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

// Probabilities at the graph's end, where the loss makes some itself.
std::optional<onnx::ProbabilityEnd> unwanted_probabilities(onnx::Graph& graph,
                                                           const std::optional<std::string>& output,
                                                           LossActivation activation) {
  if (!output || activation == LossActivation::none) return std::nullopt;
  std::optional<onnx::ProbabilityEnd> end = onnx::find_probabilities(graph, *output);
  if (end && end->is_sigmoid && activation == LossActivation::softmax) return std::nullopt;
  // The softmax of logits is another thing than the sigmoid of the same.
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
  result.patterns = onnx::recognise_patterns(model->graph, model->opset());
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

std::vector<std::string> import_report(const OnnxImport& import, onnx::Detail detail) {
  std::vector<std::string> lines = onnx::import_report({.file = *import.file,
                                                        .model = *import.model,
                                                        .patterns = import.patterns,
                                                        .classification = import.classification,
                                                        .translation = import.translation},
                                                       detail);
  for (const auto& [output, reason] : import.left_out)
    lines.push_back("output '" + output + "' is left out: " + reason + " cannot be imported");
  return lines;
}

std::string frozen_names(const OnnxImport& import) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<const onnx::Classified*> frozen;
  for (const auto& [tensor, classified] : import.classification.initializers)
    if (classified.role == onnx::Role::ambiguous) frozen.push_back(&classified);
  std::sort(frozen.begin(), frozen.end(), [](const auto* a, const auto* b) {
    return std::pair(-a->tensor->count(), a->name) < std::pair(-b->tensor->count(), b->name);
  });
  std::vector<std::string> names;
  for (const onnx::Classified* each : frozen) names.push_back(each->name);
  return some_of(names, kMostNamed);
}

std::optional<onnx::LayoutMismatch> input_mismatch(const OnnxImport& import,
                                                   const FedInput& input) {
  const auto& arguments = import.translation.arguments;
  const std::vector<onnx::ValueInfo>& declared = import.model->graph.inputs;
  for (std::size_t i = 0; i < declared.size() && i < arguments.size(); ++i) {
    const bool is_named = input.name == arguments[i].first || input.name == arguments[i].second;
    if (input.name.empty() ? i != input.position : !is_named) continue;
    return onnx::input_mismatch(declared[i], input.field, input.batch,
                                onnx::export_advice(*import.file));
  }
  return std::nullopt;
}

std::optional<onnx::LayoutMismatch> output_mismatch(const OnnxImport& import,
                                                    std::optional<std::int64_t> class_dim) {
  for (const onnx::ValueInfo& output : import.model->graph.outputs) {
    if (output.name == import.output)
      return onnx::output_mismatch(output, class_dim, onnx::export_advice(*import.file));
  }
  return std::nullopt;
}

std::string batch_advice(const OnnxImport& import, std::int64_t samples) {
  const auto advice_for = [&](const onnx::ValueInfo& value) -> std::string {
    const std::int64_t fixed = value.shape->front().value.value_or(0);
    if (fixed == 0 || fixed == samples) return "";
    const std::string batch = std::to_string(fixed);
    return "\nThe file was exported for batches of " + batch + ", not of " +
           std::to_string(samples) + ". Set data.batch_size and data.eval_batch_size to " + batch +
           ", or " + std::string(onnx::export_advice(*import.file).free_batch) + " (docs/onnx.md)";
  };
  for (const onnx::ValueInfo& input : import.file->graph.inputs) {
    if (!input.shape || input.shape->empty()) continue;
    if (std::string advice = advice_for(input); !advice.empty()) return advice;
  }
  // An input may be free while nodes still reshape to the batch of the export. An output of one
  // dimension may be a loss.
  for (const onnx::ValueInfo& output : import.model->graph.outputs) {
    if (!output.shape || output.shape->size() < 2 || output.name != import.output) continue;
    return advice_for(output);
  }
  return "";
}

void check_gradients(const OnnxImport& import, std::span<const std::string> frozen) {
  std::vector<std::string> outputs;
  if (import.output) outputs.push_back(*import.output);
  const onnx::GradientPaths paths =
      onnx::find_gradient_paths(*import.model, import.classification, import.translation, outputs);
  onnx::check_gradient_paths(paths, frozen);
}

}  // namespace decent
