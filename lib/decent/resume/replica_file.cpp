#include "decent/resume/replica_file.h"

#include <span>
#include <utility>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/core/error.h"

namespace decent {

ReplicaFile::ReplicaFile(const std::filesystem::path& folder, const CheckpointFile& expected) {
  const std::filesystem::path path = folder / expected.name;
  try {
    file_.emplace(path);
  } catch (const UserError& error) {
    throw CheckpointDamaged(std::string(error.what()) + " (a replica of the checkpoint)");
  }
  read(expected, path.string());
}

ReplicaFile::ReplicaFile(std::string bytes, const CheckpointFile& expected)
    : memory_(std::move(bytes)) {
  read(expected, expected.name);
}

std::string_view ReplicaFile::bytes() const {
  if (!file_) return memory_;
  return {reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()};
}

void ReplicaFile::read(const CheckpointFile& expected, const std::string& name) {
  check_saved(bytes(), expected, name);
  try {
    tensors_ = parse_safetensors(std::as_bytes(std::span(bytes())), name);
  } catch (const UserError& error) {
    throw CheckpointDamaged(error.what());
  }
}

}  // namespace decent
