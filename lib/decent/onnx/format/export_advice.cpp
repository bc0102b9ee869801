#include "decent/onnx/format/export_advice.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace decent::onnx {
namespace {

constexpr std::string_view kBatchFirst =
    "export the model with the batch as its first dimension, or with a transpose at its start and "
    "its end";
constexpr std::string_view kNoCustomOperators = "export the model without them";

constexpr ExportAdvice kAnyTool = {
    .producer = "",
    .free_batch = "export the model again with a free batch dimension",
    .free_sizes = "export the model again with these dimensions free",
    .batch_first = kBatchFirst,
    .no_custom_operators = kNoCustomOperators};

// Other tools, by the name that they write as producer_name.
constexpr std::array kTools = {
    ExportAdvice{
        .producer = "pytorch",
        .free_batch = "export with dynamic_shapes (dynamic_axes)",
        .free_sizes = "export with these dimensions in dynamic_shapes (dynamic_axes)",
        .batch_first = "export it with batch_first=True, or with x.transpose(0, 1) at the start "
                       "and the end of forward",
        .no_custom_operators = "export with standard operators in their place "
                               "(custom_translation_table of torch.onnx.export)",
        .keeps_parameters = "torch.onnx.export(.., optimize=False) keeps them",
        .keeps_folded = "do_constant_folding=False (dynamo: optimize=False) keeps the model's own",
        .keeps_dropout = "a model that has it loses it unless it is exported after model.train()"},
    // Freeing only the input, as --inputs does, leaves reshapes to the batch of the trace.
    ExportAdvice{
        .producer = "tf2onnx",
        .free_batch = "convert a model without a batch_size, with None for it in input_signature",
        .free_sizes = "convert with None for these dimensions in input_signature",
        .batch_first = "convert a model that takes the batch first, or put tf.transpose at its "
                       "start and its end",
        .no_custom_operators = kNoCustomOperators,
        .keeps_dropout = "a model that has it trains without it, as tf2onnx writes what a model "
                         "does in inference"},
    ExportAdvice{.producer = "jax2onnx",
                 .free_batch = "convert with a name for it: to_onnx(f, [(\"batch\", ..)])",
                 .free_sizes = "convert with names for these dimensions in to_onnx(f, [(..)])",
                 .batch_first = kBatchFirst,
                 .no_custom_operators = kNoCustomOperators},
    ExportAdvice{
        .producer = "skl2onnx",
        .free_batch = "convert with initial_types=[(\"X\", FloatTensorType([None, features]))]",
        .free_sizes = kAnyTool.free_sizes,
        .batch_first = kBatchFirst,
        .no_custom_operators = kNoCustomOperators},
};

}  // namespace

const ExportAdvice& export_advice(const Model& file) {
  const bool is_of_torch = file.graph.metadata.contains(std::string(kTorchSignature));
  const std::string_view name = is_of_torch ? "pytorch" : std::string_view(file.producer_name);
  const auto found = std::find_if(kTools.begin(), kTools.end(),
                                  [&](const ExportAdvice& each) { return each.producer == name; });
  return found == kTools.end() ? kAnyTool : *found;
}

std::string capitalised(std::string_view text) {
  std::string result(text);
  if (!result.empty())
    result.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(result.front())));
  return result;
}

std::string quantised_advice() {
  return "Give model.path the float model that it was made from, as the exporter wrote it, and "
         "quantise what --export writes once it is trained";
}

}  // namespace decent::onnx
