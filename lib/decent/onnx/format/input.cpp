#include "decent/onnx/format/input.h"

#include <utility>

#include "decent/core/error.h"

namespace decent::onnx {

Input::Input(std::span<const std::byte> content, std::filesystem::path name)
    : bytes(content),
      path(std::move(name)),
      memory_left_(kMemoryPerByte * bytes.size() + kMemoryForAnyFile) {}

void Input::fail(const std::string& message) const {
  throw UserError("model '" + path.string() + "': " + message);
}

void Input::charge(std::uint64_t size) {
  if (size > memory_left_) {
    const std::uint64_t most = kMemoryPerByte * bytes.size() + kMemoryForAnyFile;
    fail("reading it would need more than " + std::to_string(most / 1'000'000) +
         " MB of memory, the most for a file of " + std::to_string(bytes.size()) +
         " bytes: it is damaged or not made by an exporter");
  }
  memory_left_ -= size;
}

void Input::count_nodes(std::int64_t count) {
  if (count > kMaxNodes - nodes_) {
    fail("has more than " + std::to_string(kMaxNodes) +
         " nodes, the most that are read; exporters that fold constants write fewer");
  }
  nodes_ += count;
}

void Input::count_field() {
  if (++fields_ <= kMaxFields) return;
  fail("has more fields than the " + std::to_string(kMaxFields / 1'000'000) +
       " million that are read: it is damaged or not made by an exporter");
}

}  // namespace decent::onnx
