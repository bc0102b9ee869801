#pragma once
// What a file is, judged by its content, for messages about files that are not what was expected.

#include <cstddef>
#include <span>
#include <string>

namespace decent {

enum class FileKind {
  unknown,
  safetensors,
  npz,
  npy,
  torch_save,
  torchscript,
  torch_export,
  zip,
  tar,
  gzip,
  pickle,
  parquet,
  hdf5,
  image,
  text,
};

/// `bytes` is the whole file; only its beginning and the directory of an archive are looked at.
FileKind kind_of_file(std::span<const std::byte> bytes);

/// "a NumPy archive (.npz)", "a text".
std::string kind_text(FileKind kind);

}  // namespace decent
