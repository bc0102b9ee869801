#include "decent/resume/replica_file.h"

#include <span>
#include <utility>

#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

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
  if (bytes().size() != expected.bytes) {
    throw CheckpointDamaged("'" + name + "' is damaged: it has " +
                            counted(std::ssize(bytes()), "byte") + ", not " +
                            std::to_string(expected.bytes));
  }
  if (checksum_of(bytes()) != expected.checksum) {
    throw CheckpointDamaged("'" + name + "' is damaged: its checksum is not that of manifest.json");
  }
  try {
    tensors_ = parse_safetensors(std::as_bytes(std::span(bytes())), name);
  } catch (const UserError& error) {
    throw CheckpointDamaged(error.what());
  }
}

}  // namespace decent
