#include "decent/data/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <set>

#include "decent/core/error.h"
#include "decent/core/npy.h"

namespace decent {
namespace {

// Deflate packs at most 1032 bytes into one (zlib's documentation): what claims more is a lie, and
// must not be believed when memory is asked for.
constexpr std::uint64_t kMostRatio = 1032;

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

Archive open_archive(std::span<const std::byte> bytes, const std::string& file) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  const std::string reason = archive ? "" : zip_error_strerror(&error);
  if (source && !archive) zip_source_free(source);
  zip_error_fini(&error);
  if (!archive) throw UserError("'" + file + "': not a .npz archive: " + reason);
  return Archive(archive);
}

std::string field_of(const std::string& entry, const std::string& file) {
  constexpr std::string_view kSuffix = ".npy";
  if (entry.size() > kSuffix.size() && entry.ends_with(kSuffix)) {
    return entry.substr(0, entry.size() - kSuffix.size());
  }
  throw UserError("'" + file + "': entry '" + entry.substr(0, 80) +
                  "' is no .npy array; a .npz holds nothing else");
}

std::vector<std::byte> read_entry(zip_t& archive, zip_uint64_t index, const zip_stat_t& stat,
                                  std::uint64_t file_bytes, const std::string& name) {
  if (stat.size / kMostRatio > std::min(stat.comp_size, file_bytes)) {
    throw UserError(name + ": damaged: it cannot hold as much as it says");
  }
  const Entry entry(zip_fopen_index(&archive, index, 0));
  const auto fail = [&](const std::string& reason) { return UserError(name + ": " + reason); };
  if (!entry) throw fail(zip_error_strerror(zip_get_error(&archive)));
  std::vector<std::byte> bytes(stat.size);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const zip_int64_t count = zip_fread(entry.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0) throw fail("damaged: " + std::string(zip_file_strerror(entry.get())));
    done += static_cast<std::size_t>(count);
  }
  // Only at the end of the entry does libzip compare its checksum.
  std::byte more;
  if (zip_fread(entry.get(), &more, 1) != 0) {
    throw fail("damaged: " + std::string(zip_file_strerror(entry.get())));
  }
  return bytes;
}

TensorView view_of(std::vector<std::byte>& bytes, const std::string& field,
                   const std::string& name) {
  NpyHeader header = parse_npy_header(bytes, name);
  if (bytes.size() - header.data_offset != header.data_bytes) {
    throw UserError(name + ": damaged: its header asks for " + std::to_string(header.data_bytes) +
                    " bytes, it has " + std::to_string(bytes.size() - header.data_offset));
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
  const Archive archive = open_archive(bytes, file);
  Npz npz;
  std::set<std::string> names;
  const auto count =
      static_cast<zip_uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(archive.get(), 0)));
  npz.storage.reserve(count);  // the views below point into the elements
  for (zip_uint64_t index = 0; index < count; ++index) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if (zip_stat_index(archive.get(), index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
      throw UserError("'" + file + "': damaged: entry " + std::to_string(index) +
                      " cannot be read");
    }
    const std::string field = field_of(stat.name, file);
    const std::string name = "'" + file + "': array '" + field + "'";
    if (!names.insert(field).second) throw UserError(name + " is there twice");
    npz.storage.push_back(read_entry(*archive, index, stat, bytes.size(), name));
    npz.arrays.push_back(view_of(npz.storage.back(), field, name));
  }
  std::sort(npz.arrays.begin(), npz.arrays.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return npz;
}

}  // namespace decent
