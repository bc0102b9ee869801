#include "decent/data/npz.h"

#include <algorithm>
#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/npy.h"
#include "decent/core/text.h"
#include "decent/core/zip.h"

namespace decent {
namespace {

std::string field_of(std::string_view entry, const std::string& file) {
  constexpr std::string_view kSuffix = ".npy";
  if (entry.size() > kSuffix.size() && entry.ends_with(kSuffix)) {
    return std::string(entry.substr(0, entry.size() - kSuffix.size()));
  }
  throw UserError("'" + file + "': entry '" + std::string(entry.substr(0, 80)) +
                  "' is no .npy array; a .npz holds nothing else");
}

// The content of an entry, which is in `storage` if the entry is deflated.
std::span<const std::byte> content_of(const ZipEntry& entry,
                                      std::vector<std::vector<std::byte>>& storage,
                                      const std::string& name) {
  if (entry.deflated) return storage.emplace_back(zip_content(entry, name));
  check_stored(entry, name);
  return entry.data;
}

TensorView view_of(const ZipEntry& entry, std::vector<std::vector<std::byte>>& storage,
                   const std::string& field, const std::string& name) {
  const std::span<const std::byte> content = content_of(entry, storage, name);
  NpyHeader header = parse_npy_header(content, name);
  std::span<const std::byte> data = content.subspan(header.data_offset);
  if (data.size() != header.data_bytes) {
    throw UserError(name + ": damaged: its header asks for " +
                    counted(static_cast<std::int64_t>(header.data_bytes), "byte") + ", it has " +
                    std::to_string(data.size()));
  }
  if (header.fortran_order && header.data_bytes > 0) {
    std::vector<std::byte> ordered = to_c_order(data, header);
    if (entry.deflated) storage.pop_back();
    data = storage.emplace_back(std::move(ordered));
  }
  return {.name = field, .dtype = header.dtype, .shape = std::move(header.shape), .data = data};
}

}  // namespace

Npz read_npz(std::span<const std::byte> bytes, const std::string& file) {
  const std::vector<ZipEntry> entries = read_zip(bytes, "'" + file + "': not a .npz archive");
  Npz npz;
  std::set<std::string> names;
  for (const ZipEntry& entry : entries) {
    const std::string field = field_of(entry.name, file);
    const std::string name = "'" + file + "': array '" + field + "'";
    if (!names.insert(field).second) throw UserError(name + " is there twice");
    npz.arrays.push_back(view_of(entry, npz.storage, field, name));
  }
  std::sort(npz.arrays.begin(), npz.arrays.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return npz;
}

}  // namespace decent
