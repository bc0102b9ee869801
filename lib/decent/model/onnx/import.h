#pragma once
// An .onnx file as a TorchScript module that can be trained.

#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "decent/model/import_options.h"
#include "decent/onnx/report/batch_layout.h"
#include "decent/onnx/report/report.h"
#include "decent/onnx/translate/logits.h"
#include "decent/onnx/translate/translation.h"

namespace decent {

/// What an import made of a file.
struct OnnxImport {
  std::shared_ptr<const onnx::Model> file;  // as it is
  std::shared_ptr<const onnx::Model>
      model;  // functions inlined, constants hoisted, patterns replaced; what the rest refers to
  std::map<std::string, std::size_t> patterns;  // recognised in `model`, with how often
  /// ImportOptions::output as the name that the file gives it; null where there is none such.
  std::optional<std::string> output;
  /// Outputs that are left out of the module, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
  /// Where the output is probabilities that the loss makes itself: where they come from.
  std::optional<onnx::ProbabilityEnd> probabilities;
  onnx::Classification classification;
  onnx::Translation translation;  // without its tensors, of which the module has its own
  torch::jit::Module module;
};

/// Reads, translates and compiles. Throws UserError.
OnnxImport import_onnx(const std::filesystem::path& path, const ImportOptions& options);

/// See onnx/report.h.
std::vector<std::string> import_report(const OnnxImport& import, onnx::Detail detail);

/// Throws UserError where no gradient can reach a weight from the output that is used (all of them
/// where none was chosen), unless `frozen`, globs over names, holds it.
void check_gradients(const OnnxImport& import, std::span<const std::string> frozen);

/// "a, b and 3 more": tensors that the import leaves as they are and that may be weights, the
/// largest first; "" where there is none.
std::string frozen_names(const OnnxImport& import);

/// A data field that feeds an input of the graph, which is named or the one at `position`.
struct FedInput {
  std::string name;  // of the graph's input or of forward's argument; or empty
  std::size_t position = 0;
  std::string field;
  std::vector<std::int64_t> batch;  // shape
};

/// What the file's own shapes say against the data, see onnx/batch_layout.h.
std::optional<onnx::LayoutMismatch> input_mismatch(const OnnxImport& import, const FedInput& input);
/// The same for the output that is used.
std::optional<onnx::LayoutMismatch> output_mismatch(const OnnxImport& import,
                                                    std::optional<std::int64_t> class_dim);

/// What to do about a forward that failed on `samples` samples where the file was exported for
/// another number: a line that begins with a line break, or nothing.
std::string batch_advice(const OnnxImport& import, std::int64_t samples);

}  // namespace decent
