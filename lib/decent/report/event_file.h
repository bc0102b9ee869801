#pragma once
// TensorBoard's event files: scalars over steps. The format is TensorFlow's: records of a length, a
// masked CRC-32C of it, the data, a masked CRC-32C of that
// (tensorflow/core/lib/io/record_writer.h), each an Event message of protocol buffers
// (tensorflow/core/util/event.proto).

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace decent {

/// Every call's record is with the operating system when it returns. Throws WriteError.
class EventFile {
 public:
  /// Makes a file named as TensorFlow does, events.out.tfevents.<seconds>.<host>.<pid>.0.
  explicit EventFile(const std::filesystem::path& folder);

  /// A run starts (again) with this step: readers forget what other files say of it and of later
  /// ones.
  void write_start(std::int64_t step);

  /// Tags, e.g. "train/loss", and values of one step.
  void write(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void write_record(const std::string& event);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// CRC-32C (Castagnoli) of bytes, as RFC 3720 defines it.
std::uint32_t crc32c(const std::string& bytes);

}  // namespace decent
