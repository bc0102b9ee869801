#pragma once
// Writing a model back: the original file with new elements in some of its tensors.

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "decent/onnx/format/ir.h"
#include "decent/onnx/patterns/patterns.h"

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
  /// Whether the model is written as it was exported, not in its inference form.
  bool for_training = false;
  std::vector<RandomMask> masks = {};  // of the model
  std::vector<NewElements> elements;
  std::vector<OwnInitializer> own;
  /// Entries of the model's metadata_props, in place of those of their keys.
  std::map<std::string, std::string> metadata = {};
};

/// Writes `model` with `changes` to `path`, in its inference form: training_mode of
/// BatchNormalization is 0 and its outputs of training are gone, Dropout has no training_mode
/// input, and `changes.masks` are ones. All else is copied byte for byte: a model that is in that
/// form already and has no changes gives the same file, where it has no external data. External
/// data goes to one new file beside `path`, named after it (ExternalWriter). What nothing uses any
/// more, such as an initializer that was Dropout's training_mode, stays.
///
/// However this ends, also with the process or the machine, what is found at `path` is whole: what
/// stood there before with its data, or the new model with its own. When all is done, the data of a
/// model that was replaced is removed, as far as it is named after it. Throws WriteError; UserError
/// where `path` is a file that the model is read from, and where the model has no inference form,
/// as something uses what BatchNormalization makes in training only.
void write_model(const Model& model, const Changes& changes, const std::filesystem::path& path);

}  // namespace decent::onnx
