#pragma once
// A trained model that came from an .onnx file, as an .onnx file.

#include <filesystem>
#include <vector>

#include "decent/model/model.h"

namespace decent {

/// Writes the model's original file with its parameters and running statistics as they are now, in
/// the types of the file; see onnx/write.h. Throws UserError where the model did not come from an
/// .onnx file, and where a weight is beyond what its type in the file can hold; WriteError.
void export_onnx(const Model& model, const std::filesystem::path& path);

/// The files besides the model itself that an .onnx model was read from; none of other models.
std::vector<std::filesystem::path> external_data_of(const Model& model);

/// Puts what the file's element types make of the weights (float16, bfloat16) into the model, which
/// then computes what the written file holds.
void round_to_file_types(Model& model);

}  // namespace decent
