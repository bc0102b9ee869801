#include "decent/data/npz_source.h"

#include <utility>

#include "decent/core/file.h"
#include "decent/data/npz.h"
#include "decent/data/table_source.h"

namespace decent {

std::unique_ptr<Source> open_npz_source(const std::filesystem::path& path) {
  const MappedFile file(path);
  auto npz = std::make_shared<Npz>(read_npz(file.bytes(), path.string()));
  std::vector<TensorView> arrays = npz->arrays;
  return make_table_source(std::move(arrays), std::move(npz), path.string());
}

}  // namespace decent
