#pragma once
// What to say about exporting a model again, in the words of the tool that wrote its file.

#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Advice for files of one tool. A text is empty where the tool has nothing of the kind.
struct ExportAdvice {
  std::string_view producer = {};  // as files name it; "" for all others
  /// Each begins with a verb: "export with ..".
  std::string_view free_batch = {};
  std::string_view free_sizes = {};  // of other dimensions
  std::string_view batch_first = {};
  std::string_view no_custom_operators = {};
  /// Each says what keeps something that the export lost.
  std::string_view keeps_parameters = {};
  std::string_view keeps_folded = {};
  std::string_view keeps_dropout = {};
};

/// The advice for the tool that wrote `file`.
const ExportAdvice& export_advice(const Model& file);

/// Where PyTorch's exporter lists what the exported model had, in the graph's metadata.
inline constexpr std::string_view kTorchSignature =
    "pkg.torch.export.ExportedProgram.graph_signature";

}  // namespace decent::onnx
