#include "decent/core/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace decent {
namespace {

// Of any number of bytes, to and from any address, and not a byte more.
TEST(StreamCopy, CopiesWhatItIsAskedTo) {
  constexpr std::size_t kMargin = 64;
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 200, 4096, 70'001}) {
    for (const std::size_t to_offset : {0, 1, 16, 63}) {
      for (const std::size_t from_offset : {0, 4, 33}) {
        std::vector<std::uint8_t> from(bytes + 2 * kMargin);
        std::iota(from.begin(), from.end(), std::uint8_t{7});
        std::vector<std::uint8_t> to(bytes + 3 * kMargin, 0);
        std::vector<std::uint8_t> expected = to;
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_offset), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(kMargin + to_offset));
        stream_copy(to.data() + kMargin + to_offset, from.data() + from_offset, bytes);
        EXPECT_EQ(to, expected) << bytes << " bytes, " << to_offset << ", " << from_offset;
      }
    }
  }
}

}  // namespace
}  // namespace decent
