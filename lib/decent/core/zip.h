#pragma once
// Zip archives in memory: what torch.save, torch.jit.save and numpy.savez write. Files come from
// users, so every field is distrusted. Bytes in, views of them out; no torch.
//
// The reader is our own, because no library tells where in the file an entry lies. Weights that are
// stored uncompressed stay in the mapped file and are copied once, into the model.

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

/// The entries in the order of the archive's directory, with 64-bit sizes if it has them. Throws
/// UserError, which begins with `what` and a colon, for bytes that are not one whole archive, for
/// entries that lie outside of it, are encrypted or are compressed by anything but deflate, and for
/// archives in several parts; also if two entries overlap or have the same name, or if one overlaps
/// the directory. Contents and checksums are not checked.
std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& what);

/// The content of an entry, inflated if it is deflated. Throws UserError, which begins with `what`,
/// if its size or checksum differs from what the archive says. Memory is allocated only if the
/// compressed data can hold that much.
std::vector<std::byte> zip_content(const ZipEntry& entry, const std::string& what);

/// Reads a stored entry once, in place, to verify its checksum. Throws UserError as zip_content
/// does.
void check_stored(const ZipEntry& entry, const std::string& what);

/// The places in the archive `bytes` that hold the checksum of an entry. Code that changes the
/// content, but not its size, must update all of them. Throws UserError, which begins with `what`,
/// if the checksum is not there.
std::vector<std::uint64_t> checksum_places(std::span<const std::byte> bytes, const ZipEntry& entry,
                                           const std::string& what);

/// The CRC-32 of some content followed by `content`, where `before` is the CRC-32 of the first
/// part.
std::uint32_t zip_checksum(std::span<const std::byte> content, std::uint32_t before = 0);

}  // namespace decent
