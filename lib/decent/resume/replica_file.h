#pragma once
// One worker's file of a checkpoint, for reading.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "decent/checkpoint/manifest.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"

namespace decent {

/// Mapped, or in memory, and checked against the manifest. Movable.
class ReplicaFile {
 public:
  /// Throws CheckpointDamaged naming the file if it is missing or is not what was saved.
  ReplicaFile(const std::filesystem::path& folder, const CheckpointFile& expected);
  /// The same for bytes that came from another worker.
  ReplicaFile(std::string bytes, const CheckpointFile& expected);

  std::string_view bytes() const;
  /// nullptr if it has no tensor of that name.
  const TensorView* find(std::string_view name) const { return tensors_.find(name); }

 private:
  void read(const CheckpointFile& expected, const std::string& name);

  std::optional<MappedFile> file_;
  std::string memory_;  // too long for the small-string optimization: views survive a move
  Safetensors tensors_;
};

}  // namespace decent
