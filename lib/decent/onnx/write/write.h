#pragma once
// Writes a model back: the original file with new elements in some of its tensors.

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
  /// A tensor of the model, or one whose fields are in its file (hoist_constants.h).
  const Tensor* tensor = nullptr;
  std::vector<std::byte> elements;
};

/// An Identity node that renames an initializer and got a value of its own in training. The written
/// graph has an initializer with the node's output name in place of the node.
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
  /// Entries of the model's metadata_props; they replace entries with the same keys.
  std::map<std::string, std::string> metadata = {};
};

/// Writes `model` with `changes` to `path`, in its inference form: training_mode of
/// BatchNormalization is 0 and its outputs of training are gone, Dropout has no training_mode
/// input, and `changes.masks` are ones. Everything else is copied byte for byte: a model that
/// already has that form, has no changes and no external data gives the same file. External data
/// goes to one new file beside `path`, named after it (ExternalWriter). Parts that nothing uses any
/// more stay, such as an initializer that was Dropout's training_mode.
///
/// Even if the process or the machine fails, `path` holds a whole model: the old one with its data,
/// or the new one with its own. In the end the data of a replaced model is removed, if it is named
/// after the model. Throws WriteError; UserError if `path` is a file from which the model is read,
/// and if the model has no inference form because something uses an output that BatchNormalization
/// has only in training.
void write_model(const Model& model, const Changes& changes, const std::filesystem::path& path);

}  // namespace decent::onnx
