#include "decent/report/predictions/zip_writer.h"

#include <algorithm>
#include <concepts>

#include "decent/core/zip.h"

namespace decent {
namespace {

// PKWARE's APPNOTE.TXT, 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryHeader = 0x02014b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint16_t kVersion = 45;  // the first with 64-bit sizes
constexpr std::uint16_t kUtf8 = 1 << 11;
constexpr std::uint16_t kDate = (1 << 5) | 1;  // always 1 January 1980, for the same bytes
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;    // the number is in the 64-bit field
constexpr std::uint16_t kSizes64 = 1;          // the extra field with 64-bit numbers

class Bytes {
 public:
  template <std::unsigned_integral T>
  Bytes& add(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      text_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
    return *this;
  }
  Bytes& add(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

constexpr std::uint16_t operator""_u16(unsigned long long value) {
  return static_cast<std::uint16_t>(value);
}
constexpr std::uint32_t operator""_u32(unsigned long long value) {
  return static_cast<std::uint32_t>(value);
}

std::uint32_t checksum_of(std::span<const std::span<const std::byte>> pieces) {
  std::uint32_t checksum = 0;
  for (const auto& piece : pieces) checksum = zip_checksum(piece, checksum);
  return checksum;
}

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  offset_ += bytes.size();
}

void ZipWriter::add(std::string_view name, std::span<const std::span<const std::byte>> pieces) {
  Entry entry{
      .name = std::string(name), .size = 0, .checksum = checksum_of(pieces), .offset = offset_};
  for (const auto& piece : pieces) entry.size += piece.size();
  Bytes header;
  header.add(kLocalHeader).add(kVersion).add(kUtf8).add(0_u16).add(0_u16).add(kDate);
  header.add(entry.checksum).add(kIn64).add(kIn64);
  header.add(static_cast<std::uint16_t>(name.size())).add(20_u16).add(name);
  header.add(kSizes64).add(16_u16).add(entry.size).add(entry.size);
  write(header.text());
  for (const auto& piece : pieces)
    write({reinterpret_cast<const char*>(piece.data()), piece.size()});
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const std::uint64_t begin = offset_;
  for (const Entry& entry : entries_) {
    Bytes header;
    header.add(kDirectoryHeader).add(kVersion).add(kVersion).add(kUtf8).add(0_u16).add(0_u16);
    header.add(kDate).add(entry.checksum).add(kIn64).add(kIn64);
    header.add(static_cast<std::uint16_t>(entry.name.size())).add(28_u16);
    header.add(0_u16).add(0_u16).add(0_u16).add(0_u32).add(kIn64).add(entry.name);
    header.add(kSizes64).add(24_u16).add(entry.size).add(entry.size).add(entry.offset);
    write(header.text());
  }
  const std::uint64_t end = offset_;
  const std::uint64_t count = entries_.size();
  Bytes tail;
  tail.add(kEnd64).add(std::uint64_t{44}).add(kVersion).add(kVersion).add(0_u32).add(0_u32);
  tail.add(count).add(count).add(end - begin).add(begin);
  tail.add(kLocator64).add(0_u32).add(end).add(1_u32);
  const auto few = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xFFFF));
  tail.add(kEnd).add(0_u16).add(0_u16).add(few).add(few).add(kIn64).add(kIn64).add(0_u16);
  write(tail.text());
}

}  // namespace decent
