#pragma once
// TensorBoard's event files: scalars over steps. The format is TensorFlow's: a record is a length,
// the length's masked CRC-32C, the data, and the data's masked CRC-32C
// (tensorflow/core/lib/io/record_writer.h). The data is an Event message of protocol buffers
// (tensorflow/core/util/event.proto).

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace decent {

/// When a call returns, its record has been passed to the operating system. Throws WriteError.
class EventFile {
 public:
  /// Creates a file named as TensorFlow does, events.out.tfevents.<seconds>.<host>.<pid>.0.
  explicit EventFile(const std::filesystem::path& folder);

  /// Notes that a run starts or resumes with this step: readers then discard values of this step
  /// and later ones in other files.
  void write_start(std::int64_t step);

  /// Writes the values of one step with their tags, e.g. "train/loss".
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
