#pragma once
// External data of a model that is written.

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decent/core/file.h"
#include "decent/model/onnx/splice.h"

namespace decent::onnx {

/// Tensor -> its new elements, of those that change.
using Changed = std::map<const Tensor*, std::span<const std::byte>>;

/// Where external data goes. A file whose name begins with the model's ("m.onnx.data" of "m.onnx")
/// or with that without its ending ("m_data", "m.bin") gets the new model's in its place; others
/// keep their name. The folders in front of it stay.
std::string new_location(const std::string& location, const std::filesystem::path& model,
                         const std::filesystem::path& written);

/// The external data of `model`, copied beside `path` with `changed` in place. Tensors that shared
/// a range and no longer agree get ranges of their own at the end of the file. Appends the edits of
/// the model file that follow from new names and ranges. The files appear with commit(). Throws
/// WriteError; UserError where a file would overwrite one that the model is read from.
class ExternalWriter {
 public:
  ExternalWriter(Input& file, const Model& model, const Changed& changed,
                 const std::filesystem::path& path, std::vector<Edit>& edits);
  void commit();

 private:
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

}  // namespace decent::onnx
