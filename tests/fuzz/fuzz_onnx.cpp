// Any bytes are a valid model or a UserError, nothing else; what is valid is translated or refused
// with a UserError, and is written back as something that is valid.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/error.h"
#include "decent/onnx/classify/classify.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/splice.h"
#include "decent/onnx/graph/hoist_constants.h"
#include "decent/onnx/graph/inline_functions.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/translate/translation.h"
#include "decent/onnx/write/inference_form.h"
#include "input_files.h"

namespace {

namespace onnx = decent::onnx;

std::optional<onnx::Model> read(std::string_view bytes) {
  static const decent::fuzzing::Folder folder;  // empty: external data is looked for there
  try {
    return onnx::read_model(decent::fuzzing::file_of(bytes, folder.path() / "input.onnx"));
  } catch (const decent::UserError&) {
    return std::nullopt;
  }
}

std::vector<onnx::RandomMask> masks_of(const onnx::Model& file) {
  std::vector<onnx::RandomMask> masks;
  try {
    onnx::Model model = onnx::inline_functions(file);
    onnx::hoist_constants(model);
    onnx::recognise_patterns(model.graph, model.opset(), &masks);
  } catch (const decent::UserError&) {
  }
  return masks;
}

std::optional<std::string> in_inference_form(const onnx::Model& model) {
  const std::vector<onnx::RandomMask> masks = masks_of(model);
  onnx::Input file(model.files.front()->bytes(), model.path);
  std::vector<onnx::Edit> edits;
  try {
    edits = onnx::inference_form(file, model, masks);
  } catch (const decent::UserError&) {
    return std::nullopt;  // it has none
  }
  const onnx::Spliced spliced = onnx::splice(file, edits);
  std::string bytes;
  for (const std::span<const std::byte> piece : spliced.pieces) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return bytes;
}

// All of the import that needs no LibTorch.
void import(const onnx::Model& file) {
  try {
    onnx::Model model = onnx::inline_functions(file);
    onnx::recognise_patterns(model.graph, model.opset());
    const onnx::Classification classification = onnx::classify(model.graph, {});
    onnx::translate(model, classification, {});
  } catch (const decent::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = read({reinterpret_cast<const char*>(data), size});
  if (!model) return 0;
  import(*model);
  const std::optional<std::string> bytes = in_inference_form(*model);
  if (!bytes) return 0;
  // Its form for inference is its own.
  const auto again = read(*bytes);
  if (!again || in_inference_form(*again) != bytes) __builtin_trap();
  return 0;
}
