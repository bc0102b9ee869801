#pragma once
// Writing a model back: the original file with new elements in some of its tensors.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "decent/model/onnx/ir.h"

namespace decent::onnx {

/// New elements of a tensor, in its own type, little-endian and row-major.
struct NewElements {
  /// Of the model, or one whose fields lie in its file (hoist_constants.h).
  const Tensor* tensor = nullptr;
  std::vector<std::byte> elements;
};

/// A node that hands on an initializer (Identity) which training gave a value of its own: the
/// written graph has an initializer of the node's output name in place of the node.
struct OwnInitializer {
  const Node* node = nullptr;
  Tensor tensor;  // name, type, dims, elements (decoded)
};

struct Changes {
  std::vector<NewElements> elements;
  std::vector<OwnInitializer> own;
};

/// Writes `model` with `changes` to `path`, in its inference form: training_mode of
/// BatchNormalization is 0 and its outputs of training are gone, Dropout has no training_mode
/// input. All else is copied byte for byte: a model that is in that form already and has no changes
/// gives the same file. External data goes to files beside `path`, named after it where the
/// original's is named after the original (new_location in write_external.h). What nothing uses any
/// more, such as an initializer that was Dropout's training_mode, stays. Files are whole or absent,
/// the model last. Throws WriteError; UserError where `path` or its external data would overwrite
/// files that the model is read from, and where the model has no inference form, as something uses
/// what BatchNormalization makes in training only.
void write_model(const Model& model, const Changes& changes, const std::filesystem::path& path);

}  // namespace decent::onnx
