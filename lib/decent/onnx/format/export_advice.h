#pragma once
// Advice on exporting a model again, in terms of the tool that wrote its file.

#include <string>
#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Advice for files of one tool. A text is empty if the tool has no such option.
struct ExportAdvice {
  std::string_view producer = {};  // as files name it; "" for all others
  /// Each begins with a verb: "export with ..".
  std::string_view free_batch = {};
  std::string_view free_sizes = {};  // of other dimensions
  std::string_view batch_first = {};
  std::string_view no_custom_operators = {};
  /// Each says how to keep something that the export lost.
  std::string_view keeps_parameters = {};
  std::string_view keeps_folded = {};
  std::string_view keeps_dropout = {};
};

/// The advice for the tool that wrote `file`.
const ExportAdvice& export_advice(const Model& file);

/// The key of the graph's metadata under which PyTorch's exporter lists the inputs and outputs of
/// the exported model.
inline constexpr std::string_view kTorchSignature =
    "pkg.torch.export.ExportedProgram.graph_signature";

/// An advice with a capital letter at the start, as a sentence.
std::string capitalised(std::string_view text);

/// Advice on a file with operators or elements of a quantised model.
std::string quantised_advice();

}  // namespace decent::onnx
