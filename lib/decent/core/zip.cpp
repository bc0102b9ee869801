#include "decent/core/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "decent/core/byte_reader.h"
#include "decent/core/error.h"
#include "decent/core/gzip.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// APPNOTE.TXT, PKWARE's description of the format, names the records and fields.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kDataDescriptor = 0x08074b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kEnd64Locator = 0x07064b50;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64LocatorBytes = 20;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::uint16_t kInExtra16 = 0xffff;      // the field is in the 64-bit record
constexpr std::uint32_t kInExtra32 = 0xffffffff;  // the same
constexpr std::uint16_t kExtra64 = 1;             // the kind of extra field with 64-bit numbers
constexpr std::uint16_t kEncrypted = 1;           // a flag
constexpr std::uint16_t kHasDescriptor = 8;       // a flag: the checksum follows the data
constexpr std::uint64_t kFlagsInDirectory = 8;    // offsets of fields in their records
constexpr std::uint64_t kChecksumInDirectory = 16;
constexpr std::uint64_t kChecksumInHeader = 14;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;

// Where the directory lies.
struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& what) : bytes_(bytes), what_(what) {}

  std::vector<ZipEntry> read() {
    const Directory directory = find_directory();
    ByteReader reader = at(directory.offset, directory.size);
    std::vector<ZipEntry> entries;
    while (reader.left() > 0) {
      const std::uint64_t place = directory.offset + reader.position();
      entries.push_back(read_entry(reader));
      entries.back().directory = place;
    }
    if (entries.size() != directory.entries) fail("its directory has another length than it says");
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(what_ + ": damaged: " + reason);
  }

  ByteReader at(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      fail("its directory points beyond its end (cut short?)");
    }
    return {bytes_.subspan(offset, size), what_ + ": damaged: its directory ends too early"};
  }
  ByteReader from(std::uint64_t offset) const {
    return at(offset, offset < bytes_.size() ? bytes_.size() - offset : 0);
  }

  // The position of the record at the end, which a comment may follow.
  std::size_t find_end() const {
    const std::size_t most = std::min(bytes_.size(), kEndBytes + kLongestComment);
    for (std::size_t size = kEndBytes; size <= most; ++size) {
      const std::span<const std::byte> end = bytes_.last(size);
      if (std::memcmp(end.data(), &kEnd, sizeof kEnd) != 0) continue;
      ByteReader comment_bytes(end.subspan(kEndBytes - 2), "");
      if (comment_bytes.number<std::uint16_t>() == size - kEndBytes) return bytes_.size() - size;
    }
    throw UserError(what_ + ": no zip archive, or cut short: its directory is not there");
  }

  Directory find_directory() const {
    const std::size_t end = find_end();
    ByteReader reader = from(end + 4);
    const auto disk = reader.number<std::uint16_t>();
    const auto first_disk = reader.number<std::uint16_t>();
    reader.number<std::uint16_t>();  // entries on this disk
    Directory directory;
    directory.entries = reader.number<std::uint16_t>();
    directory.size = reader.number<std::uint32_t>();
    directory.offset = reader.number<std::uint32_t>();
    const bool is_long = directory.entries == kInExtra16 || directory.size == kInExtra32 ||
                         directory.offset == kInExtra32;
    if (is_long && end >= kEnd64LocatorBytes) read_long_directory(end, directory);
    if ((disk != 0 && disk != kInExtra16) || (first_disk != 0 && first_disk != kInExtra16)) {
      fail("it is one of several parts");
    }
    return directory;
  }

  // Without a locator the 32-bit numbers are the real ones.
  void read_long_directory(std::size_t end, Directory& directory) const {
    ByteReader locator = from(end - kEnd64LocatorBytes);
    if (locator.number<std::uint32_t>() != kEnd64Locator) return;
    locator.number<std::uint32_t>();  // disk
    ByteReader reader = from(locator.number<std::uint64_t>());
    if (reader.number<std::uint32_t>() != kEnd64) fail("its 64-bit directory is not where it says");
    reader.piece(8 + 2 + 2 + 4 + 4 + 8);  // size, versions, disks, entries on this disk
    directory.entries = reader.number<std::uint64_t>();
    directory.size = reader.number<std::uint64_t>();
    directory.offset = reader.number<std::uint64_t>();
  }

  ZipEntry read_entry(ByteReader& reader) const {
    if (reader.number<std::uint32_t>() != kDirectoryEntry) fail("its directory is broken");
    reader.piece(2 + 2);  // versions
    const auto flags = reader.number<std::uint16_t>();
    const auto method = reader.number<std::uint16_t>();
    reader.piece(2 + 2);  // time, date
    ZipEntry entry;
    entry.checksum = reader.number<std::uint32_t>();
    std::uint64_t compressed = reader.number<std::uint32_t>();
    entry.size = reader.number<std::uint32_t>();
    const auto name_bytes = reader.number<std::uint16_t>();
    const auto extra_bytes = reader.number<std::uint16_t>();
    const auto comment_bytes = reader.number<std::uint16_t>();
    reader.piece(2 + 2 + 4);  // disk, attributes
    entry.header = reader.number<std::uint32_t>();
    entry.name = reader.text(name_bytes);
    read_long_fields(reader.piece(extra_bytes), {&entry.size, &compressed, &entry.header});
    reader.piece(comment_bytes);
    entry.deflated = method == kDeflated;
    check_kind(entry, flags, method);
    entry.data = data_at(entry.header, compressed);
    if (!entry.deflated && compressed != entry.size) fail(named(entry) + " has two sizes");
    return entry;
  }

  static std::string named(const ZipEntry& entry) { return "entry " + in_quotes(entry.name); }

  void check_kind(const ZipEntry& entry, std::uint16_t flags, std::uint16_t method) const {
    if ((flags & kEncrypted) != 0) throw UserError(what_ + ": " + named(entry) + " is encrypted");
    if (method != kStored && method != kDeflated) {
      throw UserError(what_ + ": " + named(entry) + " is compressed by a method (" +
                      std::to_string(method) + ") that cannot be read; stored and deflated can");
    }
  }

  // An extra field holds, in this order, each number that does not fit into its own field.
  void read_long_fields(std::span<const std::byte> extra,
                        std::initializer_list<std::uint64_t*> fields) const {
    ByteReader reader(extra, what_ + ": damaged: an extra field ends too early");
    while (reader.left() >= 4) {
      const auto kind = reader.number<std::uint16_t>();
      ByteReader content(reader.piece(reader.number<std::uint16_t>()),
                         what_ + ": damaged: a 64-bit size is missing");
      if (kind != kExtra64) continue;
      for (std::uint64_t* field : fields) {
        if (*field == kInExtra32) *field = content.number<std::uint64_t>();
      }
    }
  }

  std::span<const std::byte> data_at(std::uint64_t header, std::uint64_t size) const {
    ByteReader reader = from(header);
    if (reader.number<std::uint32_t>() != kLocalHeader) fail("an entry is not where it says");
    reader.piece(22);  // fields that the directory repeats
    const auto name_bytes = reader.number<std::uint16_t>();
    const auto extra_bytes = reader.number<std::uint16_t>();
    reader.piece(name_bytes);
    reader.piece(extra_bytes);
    return reader.piece(size);
  }

  std::span<const std::byte> bytes_;
  const std::string& what_;
};

// Inflates all of `from`; true if the result fills `to` exactly.
bool inflate_into(std::span<const std::byte> from, std::span<std::byte> to) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;  // without zlib's own header
  constexpr std::size_t kMaxBytesAtOnce = std::numeric_limits<uInt>::max();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
  Bytef nothing = 0;  // zlib refuses a null pointer, also for no bytes
  stream.next_out = to.empty() ? &nothing : reinterpret_cast<Bytef*>(to.data());
  std::size_t in_left = from.size();
  std::size_t out_left = to.size();
  int result = Z_OK;
  while (result == Z_OK) {
    const auto in = static_cast<uInt>(std::min(in_left, kMaxBytesAtOnce));
    const auto out = static_cast<uInt>(std::min(out_left, kMaxBytesAtOnce));
    stream.avail_in = in;
    stream.avail_out = out;
    result = inflate(&stream, Z_NO_FLUSH);
    in_left -= in - stream.avail_in;
    out_left -= out - stream.avail_out;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END && out_left == 0;
}

void check_sum(std::span<const std::byte> content, const ZipEntry& entry, const std::string& what) {
  if (zip_checksum(content) == entry.checksum) return;
  throw UserError(what + ": damaged: its checksum is another");
}

// Where the data of an entry ends in the archive.
std::uint64_t end_of(const ZipEntry& entry, std::span<const std::byte> bytes) {
  return static_cast<std::uint64_t>(entry.data.data() - bytes.data()) + entry.data.size();
}

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::uint64_t place, const std::string& what) {
  ByteReader reader(bytes.subspan(std::min<std::uint64_t>(place, bytes.size())), what);
  return reader.number<Number>();
}

// If entries could overlap, a small archive could claim any amount of content.
void check_apart(std::span<const ZipEntry> entries, std::span<const std::byte> bytes,
                 const std::string& what) {
  std::vector<const ZipEntry*> sorted;
  for (const ZipEntry& entry : entries) sorted.push_back(&entry);
  const auto pair_with = [&](auto is_wrong, const char* reason) {
    const auto found = std::ranges::adjacent_find(sorted, is_wrong);
    if (found == sorted.end()) return;
    throw UserError(what + ": damaged: entries " + in_quotes((*found)->name) + " and " +
                    in_quotes((*std::next(found))->name) + reason);
  };
  std::ranges::sort(sorted, {}, &ZipEntry::header);
  const auto first = std::ranges::min_element(entries, {}, &ZipEntry::directory);
  if (first != entries.end() && end_of(*sorted.back(), bytes) > first->directory) {
    throw UserError(what + ": damaged: entry " + in_quotes(sorted.back()->name) +
                    " lies over the directory");
  }
  pair_with([&](const ZipEntry* a, const ZipEntry* b) { return end_of(*a, bytes) > b->header; },
            " lie over one another");
  std::ranges::sort(sorted, {}, &ZipEntry::name);
  pair_with([](const ZipEntry* a, const ZipEntry* b) { return a->name == b->name; },
            " have one name");
}

}  // namespace

std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& what) {
  std::vector<ZipEntry> entries = Reader(bytes, what).read();
  check_apart(entries, bytes, what);
  return entries;
}

std::vector<std::byte> zip_content(const ZipEntry& entry, const std::string& what) {
  if (entry.size / kMaxDeflateRatio > entry.data.size()) {
    throw UserError(what + ": damaged: it cannot hold as much as it says");
  }
  std::vector<std::byte> content;
  if (entry.deflated) {
    content.resize(entry.size);
    if (!inflate_into(entry.data, content)) {
      throw UserError(what + ": damaged: its compressed data is broken");
    }
  } else {
    content.assign(entry.data.begin(), entry.data.end());
  }
  check_sum(content, entry, what);
  return content;
}

void check_stored(const ZipEntry& entry, const std::string& what) {
  check_sum(entry.data, entry, what);
}

std::vector<std::uint64_t> checksum_places(std::span<const std::byte> bytes, const ZipEntry& entry,
                                           const std::string& what) {
  const std::string missing = what + ": damaged: the checksum of entry " + in_quotes(entry.name) +
                              " is not where it should be";
  std::vector<std::uint64_t> places{entry.directory + kChecksumInDirectory};
  const auto flags = number_at<std::uint16_t>(bytes, entry.directory + kFlagsInDirectory, missing);
  if ((flags & kHasDescriptor) == 0) {
    places.push_back(entry.header + kChecksumInHeader);
  } else {
    const std::uint64_t end = end_of(entry, bytes);
    const bool is_marked = number_at<std::uint32_t>(bytes, end, missing) == kDataDescriptor;
    places.push_back(is_marked ? end + sizeof kDataDescriptor : end);
  }
  for (const std::uint64_t place : places) {
    if (number_at<std::uint32_t>(bytes, place, missing) != entry.checksum) throw UserError(missing);
  }
  return places;
}

std::uint32_t zip_checksum(std::span<const std::byte> content, std::uint32_t before) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(content.data()), content.size()));
}

}  // namespace decent
