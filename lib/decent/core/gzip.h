#pragma once
// Files that gzip compressed, read from the front. Files come from users, so every field is
// distrusted.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace decent {

/// Deflate packs at most this many bytes into one (zlib's documentation). A file that claims more
/// is lying, and memory must not be allocated for its claim.
inline constexpr std::size_t kMaxDeflateRatio = 1032;

/// Whether these bytes begin like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

/// The content of a gzip file, or of several one after another, which gzip itself accepts too.
class GzipReader {
 public:
  /// `bytes` outlive the reader. Errors begin with `what`.
  GzipReader(std::span<const std::byte> bytes, std::string what);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Fills `out` from the front with the next bytes and returns their number, which is less than
  /// the size of `out` only at the end. Throws UserError with the offset for data that is broken,
  /// cut short, has another checksum or length than it says, or is followed by anything else.
  std::size_t read(std::span<std::byte> out);

 private:
  struct Stream;
  [[noreturn]] void fail(const std::string& reason) const;
  bool next_member();

  std::span<const std::byte> left_;
  std::size_t size_;
  std::string what_;
  std::unique_ptr<Stream> stream_;
  bool ended_ = false;
};

}  // namespace decent
