#include "decent/core/zip_edit.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <functional>
#include <type_traits>

#include "decent/core/byte_reader.h"
#include "decent/core/error.h"
#include "decent/core/zip.h"

namespace decent {
namespace {

// APPNOTE.TXT, PKWARE's description of the format, names the records and fields.
constexpr std::uint16_t kVersionOf64 = 45;
constexpr std::uint16_t kFirstDay = 0x0021;        // 1980-01-01, where the format's calendar begins
constexpr std::uint32_t kNumberOf64 = 0xffffffff;  // the number stands in a field of 64 bits

class Record {
 public:
  template <std::integral... Numbers>
  Record& add(Numbers... numbers) {
    static_assert(std::endian::native == std::endian::little);
    (bytes_.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
    return *this;
  }
  Record& text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::uint16_t name_bytes(const ZipAddition& entry) {
  return static_cast<std::uint16_t>(entry.name.size());
}

// From "flags" to "uncompressed size", which both headers have.
void add_common(const ZipAddition& entry, Record& record) {
  const std::uint32_t checksum = zip_checksum(std::as_bytes(std::span(entry.content)));
  const auto size = static_cast<std::uint32_t>(entry.content.size());
  const std::uint16_t none = 0;  // flags, method (stored), time
  record.add(none, none, none, kFirstDay, checksum, size, size);
}

std::string local_entry(const ZipAddition& entry) {
  Record record;
  record.add(std::uint32_t{0x04034b50}, kVersionOf64);
  add_common(entry, record);
  record.add(name_bytes(entry), std::uint16_t{0});
  return record.text(entry.name).text(entry.content).take();
}

// `header` is the position of its local header.
std::string directory_entry(const ZipAddition& entry, std::uint64_t header) {
  const std::uint16_t none = 0;
  Record record;
  record.add(std::uint32_t{0x02014b50}, kVersionOf64, kVersionOf64);
  add_common(entry, record);
  record.add(name_bytes(entry), std::uint16_t{2 + 2 + 8}, none);  // no comment
  record.add(none, none, std::uint32_t{0}, kNumberOf64);          // disk, attributes, header
  record.text(entry.name).add(std::uint16_t{1}, std::uint16_t{8}, header);
  return record.take();
}

struct NewDirectory {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t entries = 0;
};

// Always with 64 bits, as PyTorch writes it.
std::string end_of_archive(const NewDirectory& directory) {
  const std::uint32_t first_disk = 0;
  Record record;
  record.add(std::uint32_t{0x06064b50}, std::uint64_t{44}, kVersionOf64, kVersionOf64, first_disk,
             first_disk, directory.entries, directory.entries, directory.size, directory.begin);
  record.add(std::uint32_t{0x07064b50}, first_disk, directory.begin + directory.size,
             std::uint32_t{1});
  const std::uint16_t disk = 0;
  const std::uint16_t entries = 0xffff;
  record.add(std::uint32_t{0x06054b50}, disk, disk, entries, entries, kNumberOf64, kNumberOf64,
             std::uint16_t{0});
  return record.take();
}

std::uint64_t directory_bytes(std::span<const std::byte> archive, const ZipEntry& entry,
                              const std::string& what) {
  constexpr std::uint64_t kLengthsOffset = 28;  // bytes before the three lengths of fields
  constexpr std::uint64_t kFixedBytes = 46;
  ByteReader reader(archive.subspan(entry.directory), what + ": damaged: its directory is broken");
  reader.piece(kLengthsOffset);
  std::uint64_t bytes = kFixedBytes;
  for (int field = 0; field < 3; ++field) bytes += reader.number<std::uint16_t>();
  return bytes;
}

bool is_replaced(const ZipEntry& entry, std::span<const ZipAddition> added) {
  return std::ranges::find(added, entry.name, &ZipAddition::name) != added.end();
}

// Where the last kept entry ends: replaced entries behind it are overwritten.
std::uint64_t end_of_kept(std::vector<ZipEntry> entries, std::span<const ZipAddition> added) {
  std::uint64_t end = entries.front().directory;
  std::ranges::sort(entries, std::greater<>(), &ZipEntry::header);
  for (const ZipEntry& entry : entries) {
    if (!is_replaced(entry, added)) break;
    end = entry.header;
  }
  return end;
}

}  // namespace

std::vector<ZipEdit> edits_to_add(std::span<const std::byte> archive,
                                  std::span<const ZipAddition> added, const std::string& what) {
  const std::vector<ZipEntry> entries = read_zip(archive, what);
  if (entries.empty()) throw UserError(what + ": it has no entries");
  const std::uint64_t begin = entries.front().directory;
  const std::uint64_t end =
      entries.back().directory + directory_bytes(archive, entries.back(), what);
  std::vector<ZipEdit> edits = {{end_of_kept(entries, added), begin}};
  std::string last;
  for (const ZipAddition& entry : added) {
    last += directory_entry(entry, edits.front().begin + edits.front().bytes.size());
    edits.front().bytes += local_entry(entry);
  }
  NewDirectory directory{.begin = edits.front().begin + edits.front().bytes.size(),
                         .size = end - begin + last.size(),
                         .entries = entries.size() + added.size()};
  for (const ZipEntry& entry : entries) {
    if (!is_replaced(entry, added)) continue;
    const std::uint64_t removed = directory_bytes(archive, entry, what);
    edits.push_back({entry.directory, entry.directory + removed});
    directory.size -= removed;
    --directory.entries;
  }
  edits.push_back({end, archive.size(), last + end_of_archive(directory)});
  return edits;
}

}  // namespace decent
