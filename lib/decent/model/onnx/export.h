#pragma once
// A trained model that came from an .onnx file, as an .onnx file.

#include <filesystem>

#include "decent/model/file_extras.h"
#include "decent/model/model.h"
#include "decent/model/onnx/import.h"

namespace decent {

/// Writes the original file with the parameters and running statistics of `model`, which was made
/// by `import`, in the types of the file; see onnx/write.h. Throws UserError if a weight is beyond
/// the range of its type in the file; WriteError.
void export_onnx(const OnnxImport& import, const Model& model, const std::filesystem::path& path,
                 const FileExtras& extras);

/// Rounds the model's weights to the file's element types (float16, bfloat16), so that the model
/// computes the same as the written file.
void round_to_file_types(const OnnxImport& import, Model& model);

}  // namespace decent
