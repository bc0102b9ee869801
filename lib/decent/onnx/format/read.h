#pragma once
// Reading an ONNX file of unknown origin.

#include <filesystem>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// The oldest and newest version of the standard operators that can be read.
inline constexpr std::int64_t kOldestOpset = 9;
inline constexpr std::int64_t kNewestOpset = 28;

/// Reads and checks a model: every count and size is checked before memory is allocated for it,
/// external data comes only from inside the model's folder, and every value is made once and before
/// it is used. Files are mapped, not copied. Throws UserError naming the file and the place in it.
Model read_model(const std::filesystem::path& path);

/// The same for a file that is already mapped; its external data is beside its path.
Model read_model(std::shared_ptr<const MappedFile> file);

/// A TensorProto by itself, as in onnx's test data files; errors name `path`.
Tensor read_tensor(std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace decent::onnx
