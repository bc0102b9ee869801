#pragma once
// The .npz format: a zip archive of .npy arrays, as numpy.savez and savez_compressed write. No
// torch.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "decent/core/safetensors.h"

namespace decent {

/// The arrays of an archive, sorted by name. Stored arrays in C order point into the archive's
/// bytes and need no memory; deflated ones, and those in Fortran order, point into `storage`.
struct Npz {
  std::vector<std::vector<std::byte>> storage;
  std::vector<TensorView> arrays;  // row-major
};

/// Reads a whole archive once, to verify its checksums; entries may be stored or deflated. Throws
/// UserError naming `file` and the entry for damaged or encrypted archives, entries that are no
/// arrays, duplicate names, sizes that disagree with headers, and sizes that the compressed data
/// cannot hold.
Npz read_npz(std::span<const std::byte> bytes, const std::string& file);

}  // namespace decent
