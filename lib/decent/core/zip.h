#pragma once
// Zip archives in memory: what torch.save, torch.jit.save and numpy.savez write. Files come from
// users, so every field is distrusted. Bytes in, views of them out; no torch.
//
// The reader is our own, as no library says where in the file an entry lies: weights that are
// stored as they are stay in the mapped file and are copied once, to where they belong.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace decent {

/// One file of an archive. Both views point into the archive's bytes.
struct ZipEntry {
  std::string_view name;
  std::span<const std::byte> data;  // compressed where deflated
  bool deflated = false;
  std::uint64_t size = 0;      // bytes of the content, as the archive says
  std::uint32_t checksum = 0;  // CRC-32 of the content, as the archive says
  std::uint64_t header = 0;  // where in the archive its local header begins, which its data follows
  std::uint64_t directory = 0;  // where its entry of the directory begins
};

/// The entries in the order of the archive's directory, with 64-bit sizes where it has them.
/// Throws UserError, which begins with `what` and a colon, for bytes that are no whole archive, for
/// entries that lie outside of it, are encrypted or are compressed by anything but deflate, and for
/// archives in several parts; where two entries lie over one another, or one over the directory,
/// and where two have one name. Contents and checksums are not looked at.
std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& what);

/// The content of an entry, inflated where it is deflated. Throws UserError, which begins with
/// `what`, where it has not the size and checksum that the archive says. Memory is only asked for
/// where the compressed data can hold that much.
std::vector<std::byte> zip_content(const ZipEntry& entry, const std::string& what);

/// Reads a stored entry once, where it lies. Throws UserError as zip_content does.
void check_stored(const ZipEntry& entry, const std::string& what);

/// Where the archive `bytes` says the checksum of an entry: whoever changes the content, but not
/// its size, changes these. Throws UserError, which begins with `what`, where it is not there.
std::vector<std::uint64_t> checksum_places(std::span<const std::byte> bytes, const ZipEntry& entry,
                                           const std::string& what);

/// The CRC-32 of `content`, which follows on content whose CRC-32 is `before`.
std::uint32_t zip_checksum(std::span<const std::byte> content, std::uint32_t before = 0);

}  // namespace decent
