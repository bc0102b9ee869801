#pragma once
// One worker's file of a checkpoint, in memory: the bytes that go to disk, as a copy of the
// worker's state that training does not change.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/core/safetensors.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

class ReplicaImage {
 public:
  /// Copies all tensors, row-major, from whatever device they are on. Every call must give the same
  /// names, shapes, types and device: memory is laid out once, pinned if tensors are on a GPU.
  void copy(const NamedTensors& tensors);

  /// A safetensors file.
  std::string_view bytes() const;

  /// The name of a trained parameter that holds a NaN or an infinity, if there is one.
  std::optional<std::string> non_finite() const;

 private:
  struct Place {
    std::string name;
    char* data;
    std::size_t bytes;
  };
  void lay_out(const NamedTensors& tensors);

  at::Tensor memory_;                // bytes
  std::vector<Place> places_;        // in the order that copy() gets tensors
  std::vector<TensorView> trained_;  // the parameters among them that have an optimizer state
};

/// Writes a replica's file into `folder`, durably. Throws WriteError.
CheckpointFile write_replica(const std::filesystem::path& folder, int rank, std::string_view bytes);

}  // namespace decent
