#include "decent/checkpoint/checksum.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace decent {
namespace {

std::string many_bytes(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 7 % 251);
  return bytes;
}

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

// From Python: xxhash.xxh3_128_hexdigest. XXH3 takes another way for each range of lengths.
TEST(Checksum, IsThatOfOtherPrograms) {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"", "99aa06d3014798d86001c324468d497f"},
      {"a", "a96faf705af16834e6c632b61e964e1f"},
      {"abc", "06b05ab6733a618578af5f94892f3950"},
      {"decent-train", "0e917b49d28f0db6b289219aba2141d1"},
      {all_bytes(), "f1f8a93f50849ac39408a4433b952d71"},
      {std::string(1000, '\0'), "3fb94aea6d09b97224c1ea6074dd588c"},
      {many_bytes(5000), "5ecbf80121973a82ce29a19460ee1bfc"}};
  for (const auto& [bytes, checksum] : known) {
    EXPECT_EQ(checksum_of(bytes), checksum) << bytes.size() << " bytes";
  }
}

TEST(Checksum, IsTheSameForBytesThatComePieceByPiece) {
  const std::string bytes = many_bytes(5000);
  for (std::size_t piece : {1U, 3U, 64U, 240U, 256U, 1024U, 4999U, 5000U, 9999U}) {
    Checksum checksum;
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
      checksum.add(std::string_view(bytes).substr(begin, piece));
      checksum.add("");
    }
    EXPECT_EQ(checksum.hex(), checksum_of(bytes)) << piece;
  }
}

TEST(Checksum, CanBeAskedOnTheWay) {
  Checksum checksum;
  EXPECT_EQ(checksum.hex(), checksum_of(""));
  checksum.add("ab");
  EXPECT_EQ(checksum.hex(), checksum_of("ab"));
  EXPECT_EQ(checksum.hex(), checksum_of("ab"));
  checksum.add("c");
  EXPECT_EQ(checksum.hex(), checksum_of("abc"));
}

}  // namespace
}  // namespace decent
