#include "decent/data/safetensors_source.h"

#include <utility>

#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/data/table_source.h"

namespace decent {

std::unique_ptr<Source> open_safetensors_source(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  std::vector<TensorView> tensors = parse_safetensors(file->bytes(), path.string()).tensors;
  return make_table_source(std::move(tensors), std::move(file), path.string());
}

}  // namespace decent
