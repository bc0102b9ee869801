#include "decent/data/npz_source.h"

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "decent/core/file.h"
#include "decent/data/built_in.h"
#include "decent/data/npz.h"
#include "decent/data/other_kinds.h"
#include "decent/data/shards.h"
#include "decent/data/table_source.h"

namespace decent {

namespace {

std::span<const std::byte> as_npz(std::span<const std::byte> bytes, const std::string& file) {
  refuse_other_kinds(bytes, file, FileKind::npz);
  return bytes;
}

// The mapped file and its arrays, which are in the file or in memory.
struct NpzFile {
  explicit NpzFile(const std::filesystem::path& path)
      : mapped(path), npz(read_npz(as_npz(mapped.bytes(), path.string()), path.string())) {}

  MappedFile mapped;
  Npz npz;
};

std::function<void(std::size_t, std::span<std::byte>)> reader_of(
    std::shared_ptr<const NpzFile> file, std::span<const std::byte> data) {
  const std::span<const std::byte> all = file->mapped.bytes();
  const std::less_equal<> order;  // defined for unrelated pointers, too
  if (order(all.data(), data.data()) && order(data.data(), all.data() + all.size())) {
    const auto begin = static_cast<std::size_t>(data.data() - all.data());
    return [file = std::move(file), begin](std::size_t offset, std::span<std::byte> out) {
      file->mapped.copy(begin + offset, out);
    };
  }
  return [file = std::move(file), data](std::size_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), data.data() + offset, out.size());
  };
}

}  // namespace

std::unique_ptr<Source> open_npz_source(const std::filesystem::path& path) {
  const auto file = std::make_shared<const NpzFile>(path);
  std::vector<Array> arrays;
  for (const TensorView& tensor : file->npz.arrays) {
    arrays.push_back({.name = tensor.name,
                      .dtype = tensor.dtype,
                      .shape = tensor.shape,
                      .read = reader_of(file, tensor.data)});
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
