#pragma once
// The file that is being read: its bytes, its name in errors, and how much memory and time it may
// still cost.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace decent::onnx {

/// The most nodes of a file, including nodes of its functions and inner graphs, and the most nodes
/// after every call is replaced by its function.
inline constexpr std::int64_t kMaxNodes = 100'000;

/// The most fields that are looked at, including fields that are skipped or looked at twice. This
/// takes about a second.
inline constexpr std::int64_t kMaxFields = 20'000'000;

/// A file may cost 4 times its size and 64 MB. Each object is charged before it is created; the
/// difference between the constants is for the overhead of the allocator.
inline constexpr std::uint64_t kMemoryPerByte = 3;
inline constexpr std::uint64_t kMemoryForAnyFile = 48'000'000;

class Input {
 public:
  Input(std::span<const std::byte> content, std::filesystem::path name);

  const std::span<const std::byte> bytes;
  const std::filesystem::path path;

  /// Throws UserError: "model 'x.onnx': " and `message`.
  [[noreturn]] void fail(const std::string& message) const;

  /// Called before `size` bytes of memory are allocated. Throws UserError if they are too many.
  void charge(std::uint64_t size);
  /// Called before `count` nodes are read. Throws UserError if they are too many.
  void count_nodes(std::int64_t count);
  /// Called before a field is looked at. Throws UserError if they are too many.
  void count_field();

 private:
  std::uint64_t memory_left_;
  std::int64_t nodes_ = 0;
  std::int64_t fields_ = 0;
};

}  // namespace decent::onnx
