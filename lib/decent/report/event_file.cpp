#include "decent/report/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "decent/core/error.h"
#include "decent/core/host.h"

namespace decent {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <typename T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of protocol buffers: a number and a wire type, then the value.
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
std::string key(int field, int wire_type) {
  return varint(static_cast<std::uint64_t>(field << 3 | wire_type));
}
std::string bytes_field(int field, const std::string& content) {
  return key(field, kBytes) + varint(content.size()) + content;
}

// Event.wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
// SessionLog.status = 1.
std::string event_start(std::int64_t step) {
  return key(1, kFixed64) + little_endian(now_s()) + key(2, kVarint) +
         varint(static_cast<std::uint64_t>(step));
}

// Summary.Value.tag = 1, simple_value = 2.
std::string summary_value(const std::string& tag, double value) {
  return bytes_field(1, tag) + key(2, kFixed32) + little_endian(static_cast<float>(value));
}

// TensorFlow masks checksums because the data may itself contain checksums.
std::uint32_t masked_crc(const std::string& bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xa282ead8U;
}

}  // namespace

std::uint32_t crc32c(const std::string& bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      std::uint32_t entry = i;
      for (int bit = 0; bit < 8; ++bit) entry = entry >> 1 ^ (entry & 1 ? 0x82f63b78U : 0U);
      entries[i] = entry;
    }
    return entries;
  }();
  std::uint32_t crc = ~0U;
  for (char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& folder)
    : path_(folder / ("events.out.tfevents." + std::to_string(static_cast<std::int64_t>(now_s())) +
                      "." + host_name() + "." + std::to_string(::getpid()) + ".0")),
      file_(std::fopen(path_.c_str(), "wbe")) {
  if (!file_) throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
  write_record(event_start(0) + bytes_field(3, "brain.Event:2"));
}

void EventFile::write_start(std::int64_t step) {
  constexpr std::uint64_t kStart = 1;
  write_record(event_start(step) + bytes_field(7, key(1, kVarint) + varint(kStart)));
}

void EventFile::write(std::int64_t step,
                      const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) summary += bytes_field(1, summary_value(tag, value));
  write_record(event_start(step) + bytes_field(5, summary));
}

void EventFile::write_record(const std::string& event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  const std::string record =
      length + little_endian(masked_crc(length)) + event + little_endian(masked_crc(event));
  const bool written = std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() &&
                       std::fflush(file_.get()) == 0;
  if (!written) throw WriteError("cannot write '" + path_.string() + "': " + std::strerror(errno));
}

}  // namespace decent
