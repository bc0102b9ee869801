#pragma once
// The file that is being read: its bytes, what is said of it in errors, and how much memory and
// time it may still cost.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace decent::onnx {

/// Most nodes of a file, those of its functions and inner graphs included, and most nodes after
/// every function is put in place of its calls.
inline constexpr std::int64_t kMaxNodes = 100'000;

/// Most fields that are looked at, those that are passed over or looked at twice included: about a
/// second.
inline constexpr std::int64_t kMaxFields = 20'000'000;

/// A file may cost 4 times its size and 64 MB. Each object is charged before it is made; the
/// difference between the two constants is for what an allocator adds.
inline constexpr std::uint64_t kMemoryPerByte = 3;
inline constexpr std::uint64_t kMemoryForAnyFile = 48'000'000;

class Input {
 public:
  Input(std::span<const std::byte> content, std::filesystem::path name);

  const std::span<const std::byte> bytes;
  const std::filesystem::path path;

  /// Throws UserError: "model 'x.onnx': " and `message`.
  [[noreturn]] void fail(const std::string& message) const;

  /// Before `size` bytes of memory are allocated. Throws UserError where they are too many.
  void charge(std::uint64_t size);
  /// Before `count` nodes are read. Throws UserError where they are too many.
  void count_nodes(std::int64_t count);
  /// Before a field is looked at. Throws UserError where they are too many.
  void count_field();

 private:
  std::uint64_t memory_left_;
  std::int64_t nodes_ = 0;
  std::int64_t fields_ = 0;
};

}  // namespace decent::onnx
