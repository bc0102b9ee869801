#include "decent/data/npz_source.h"

#include <cstring>
#include <utility>
#include <vector>

#include "decent/core/file.h"
#include "decent/data/built_in.h"
#include "decent/data/npz.h"
#include "decent/data/shards.h"
#include "decent/data/table_source.h"

namespace decent {

std::unique_ptr<Source> open_npz_source(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto npz = std::make_shared<const Npz>(read_npz(file.bytes(), path.string()));
  std::vector<Array> arrays;
  for (const TensorView& tensor : npz->arrays) {
    arrays.push_back(
        {.name = tensor.name,
         .dtype = tensor.dtype,
         .shape = tensor.shape,
         .read = [npz, data = tensor.data](std::size_t offset, std::span<std::byte> out) {
           std::memcpy(out.data(), data.data() + offset, out.size());
         }});
  }
  return make_table_source(std::move(arrays), path.string());
}

DataFormat npz_format() {
  return {.name = "npz",
          .keys = {path_key("The file, a list of files or a glob; array names are the fields.")},
          .open = [](const Options& options) {
            return open_shards(expand_globs(options.get<Paths>("path")), open_npz_source);
          }};
}

}  // namespace decent
