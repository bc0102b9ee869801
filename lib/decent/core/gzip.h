#pragma once
// Files that gzip compressed, read from the front. Files come from users, so every field is
// distrusted.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace decent {

/// Deflate packs at most so many bytes into one (zlib's documentation): what claims more is a lie,
/// and must not be believed when memory is asked for.
inline constexpr std::size_t kMaxDeflateRatio = 1032;

/// Whether these bytes begin as a file of gzip does.
bool is_gzip(std::span<const std::byte> bytes);

/// The content of a file of gzip, also of several of them in a row, as gzip itself takes them.
class GzipReader {
 public:
  /// `bytes` outlive the reader. Errors begin with `what`.
  GzipReader(std::span<const std::byte> bytes, std::string what);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Fills `out` from the front with what comes next, and returns how many bytes that are: fewer
  /// than asked for only at the end. Throws UserError with the offset for data that is broken, cut
  /// short, has another checksum or length than it says, or is followed by anything else.
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
