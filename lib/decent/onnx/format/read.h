#pragma once
// Reading an ONNX file that may come from anywhere.

#include <filesystem>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Oldest and newest version of the standard operators that are read.
inline constexpr std::int64_t kOldestOpset = 9;
inline constexpr std::int64_t kNewestOpset = 28;

/// Reads and checks a model: every count and size before memory is spent on it, external data only
/// from inside the model's folder, every value made once and before it is used. Files are mapped,
/// not copied. Throws UserError naming the file and the place in it.
Model read_model(const std::filesystem::path& path);

/// The same of a file that is mapped already; its external data lies beside its path.
Model read_model(std::shared_ptr<const MappedFile> file);

/// A TensorProto by itself, as onnx's test data files hold them; `path` is named in errors.
Tensor read_tensor(std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace decent::onnx
