// Any bytes are a file of torch.save or torch.jit.save or a UserError, nothing else; and every
// tensor lies in the file.

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../unit/support/zip_bytes.h"
#include "decent/core/error.h"
#include "decent/model/weights/formats.h"

namespace {

constexpr std::string_view kCode =
    "class Net(Module):\n  __parameters__ = [\"w\", ]\n  __buffers__ = [\"b\", ]\n"
    "class Own(Module):\n  __parameters__ = [\"w\", ]\n  def __setstate__(self: __torch__.Own,\n";

// What an archive with this pickle is.
std::string around(std::string_view pickle) {
  const std::string storage(24, '\0');
  return decent::testing::zip_bytes(
      {{.name = "a/data.pkl", .content = std::string(pickle)},
       {.name = "a/data/0", .content = storage},
       {.name = "a/data/1", .content = storage.substr(0, 3)},
       {.name = "a/code/__torch__.py",
        .content = std::string(kCode),
        .checksum = static_cast<std::uint32_t>(
            crc32_z(0, reinterpret_cast<const Bytef*>(kCode.data()), kCode.size()))}});
}

// From the first element to the last, as shape and strides say.
std::size_t bytes_of(const decent::StoredTensor& tensor) {
  if (tensor.strides.size() != tensor.shape.size()) __builtin_trap();
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return 0;
  unsigned __int128 last = 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0 || tensor.strides[i] < 0) __builtin_trap();
    last += static_cast<unsigned __int128>(tensor.shape[i] - 1) *
            static_cast<unsigned __int128>(tensor.strides[i]);
    if (last >= tensor.data.size()) __builtin_trap();
  }
  return (static_cast<std::size_t>(last) + 1) * decent::size_of(tensor.dtype);
}

void read(std::string_view file) {
  // A copy of its own size, so that AddressSanitizer sees what is read beyond it.
  const std::vector<char> copy(file.begin(), file.end());
  const auto bytes = std::as_bytes(std::span(copy));
  try {
    unsigned sum = 0;
    for (const auto& [name, tensor] : decent::read_torch_weights(bytes, "input")) {
      if (bytes_of(tensor) != tensor.data.size()) __builtin_trap();
      for (const std::byte byte : tensor.data) sum += static_cast<unsigned>(byte);
    }
    [[maybe_unused]] volatile unsigned used = sum;
  } catch (const decent::UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  read(around(bytes));
  return 0;
}
