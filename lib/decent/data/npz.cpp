#include "decent/data/npz.h"

#include <algorithm>
#include <set>

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

TensorView view_of(std::vector<std::byte>& bytes, const std::string& field,
                   const std::string& name) {
  NpyHeader header = parse_npy_header(bytes, name);
  if (bytes.size() - header.data_offset != header.data_bytes) {
    throw UserError(name + ": damaged: its header asks for " +
                    counted(static_cast<std::int64_t>(header.data_bytes), "byte") + ", it has " +
                    std::to_string(bytes.size() - header.data_offset));
  }
  if (header.fortran_order && header.data_bytes > 0) {
    bytes = to_c_order(std::span(bytes).subspan(header.data_offset), header);
    header.data_offset = 0;
  }
  return {.name = field,
          .dtype = header.dtype,
          .shape = std::move(header.shape),
          .data = std::span<const std::byte>(bytes).subspan(header.data_offset)};
}

}  // namespace

Npz read_npz(std::span<const std::byte> bytes, const std::string& file) {
  const std::vector<ZipEntry> entries = read_zip(bytes, "'" + file + "': not a .npz archive");
  Npz npz;
  std::set<std::string> names;
  npz.storage.reserve(entries.size());  // the views below point into the elements
  for (const ZipEntry& entry : entries) {
    const std::string field = field_of(entry.name, file);
    const std::string name = "'" + file + "': array '" + field + "'";
    if (!names.insert(field).second) throw UserError(name + " is there twice");
    npz.storage.push_back(zip_content(entry, name));
    npz.arrays.push_back(view_of(npz.storage.back(), field, name));
  }
  std::sort(npz.arrays.begin(), npz.arrays.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return npz;
}

}  // namespace decent
