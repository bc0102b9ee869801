#include "decent/data/safetensors_source.h"

#include <utility>
#include <vector>

#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/data/built_in.h"
#include "decent/data/other_kinds.h"
#include "decent/data/shards.h"
#include "decent/data/table_source.h"

namespace decent {

std::unique_ptr<Source> open_safetensors_source(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  refuse_other_kinds(file->bytes(), path.string(), FileKind::safetensors);
  std::vector<Array> arrays;
  for (TensorView& tensor : parse_safetensors(file->bytes(), path.string()).tensors) {
    const auto begin = static_cast<std::size_t>(tensor.data.data() - file->bytes().data());
    arrays.push_back({.name = std::move(tensor.name),
                      .dtype = tensor.dtype,
                      .shape = std::move(tensor.shape),
                      .read = [file, begin](std::size_t offset, std::span<std::byte> out) {
                        file->copy(begin + offset, out);
                      }});
  }
  return make_table_source(std::move(arrays), path.string());
}

DataFormat safetensors_format() {
  return {.name = "safetensors",
          .keys = {path_key("The file, a list of files or a glob; array names are the fields.")},
          .open = [](const Options& options) {
            return open_shards(expand_globs(options.get<Paths>("path")), open_safetensors_source);
          }};
}

}  // namespace decent
