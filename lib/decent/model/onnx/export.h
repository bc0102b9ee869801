#pragma once
// A trained model that came from an .onnx file, as an .onnx file.

#include <filesystem>

#include "decent/model/file_extras.h"
#include "decent/model/model.h"
#include "decent/model/onnx/import.h"

namespace decent {

/// Writes the original file with the parameters and running statistics of `model`, which was made
/// by `import`, in the types of the file; see onnx/write.h. Throws UserError where a weight is
/// beyond what its type in the file can hold; WriteError.
void export_onnx(const OnnxImport& import, const Model& model, const std::filesystem::path& path,
                 const FileExtras& extras);

/// Puts what the file's element types make of the weights (float16, bfloat16) into the model, which
/// then computes what the written file holds.
void round_to_file_types(const OnnxImport& import, Model& model);

}  // namespace decent
