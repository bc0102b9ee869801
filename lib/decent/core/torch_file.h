#pragma once
// Files of torch.save, including those from before PyTorch 1.6, and of torch.jit.save: a pickle,
// and beside it the memory of tensors, to which the pickle refers by keys. No torch; no code in the
// file is run.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "decent/core/dtype.h"
#include "decent/core/pickle.h"
#include "decent/core/zip.h"

namespace decent {

struct TorchFile {
  std::string what;  // the file, in messages, which begin with it
  pickle::Pickle pickle;
  std::map<std::string, std::span<const std::byte>, std::less<>> storages;  // by key
  std::map<std::string, ZipEntry, std::less<>> code;  // TorchScript: "__torch__/net.py"
};

/// Reads a file of one of these kinds from `bytes`, which must outlive the result. Throws
/// UserError, which begins with `what` and a colon, for files of other kinds, damaged files and
/// big-endian ones.
TorchFile read_torch_file(std::span<const std::byte> bytes, const std::string& what);

/// The element type of a storage class such as torch.FloatStorage.
struct StorageType {
  std::string_view name;
  std::size_t element_bytes = 1;
  std::optional<DType> dtype;  // nothing for types that no model here can have
};

/// nullptr if the name is not that of such a class.
const StorageType* find_storage_type(const pickle::Global& global);

}  // namespace decent
