#include "decent/core/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "../support/gzip_bytes.h"
#include "../support/refusal.h"
#include "../support/safetensors_bytes.h"

namespace decent {
namespace {

using testing::as_bytes;
using testing::gzip_bytes;
using ::testing::HasSubstr;
using testing::refusal;

// All content, in pieces of so many bytes.
std::string read_all(std::string_view bytes, std::size_t piece) {
  GzipReader reader(as_bytes(bytes), "'f.gz'");
  std::string content;
  std::string some(piece, '?');
  std::size_t got = piece;
  while (got == piece) {
    got = reader.read(std::as_writable_bytes(std::span(some)));
    content += some.substr(0, got);
  }
  return content;
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i * i) + " ";
  return text;
}

TEST(Gzip, IsReadInPiecesOfAnySize) {
  const std::string content = numbers(5000);
  const std::string bytes = gzip_bytes(content);
  EXPECT_TRUE(is_gzip(as_bytes(bytes)));
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{1000}, content.size(), std::size_t{1} << 20U}) {
    EXPECT_EQ(read_all(bytes, piece), content) << piece;
  }
  EXPECT_EQ(read_all(gzip_bytes(""), 10), "");
}

TEST(Gzip, TakesFilesInARowAndZerosAfterThem) {
  const std::string both = gzip_bytes("abc") + gzip_bytes("") + gzip_bytes("def");
  EXPECT_EQ(read_all(both, 2), "abcdef");
  EXPECT_EQ(read_all(both + std::string(7, '\0'), 100), "abcdef");
}

TEST(Gzip, SaysWhereItIsDamaged) {
  const std::string content = numbers(1000);
  const std::string bytes = gzip_bytes(content);
  const auto message = [](const std::string& damaged) {
    return refusal([&] { read_all(damaged, 512); });
  };
  for (const std::size_t length : {std::size_t{5}, std::size_t{12}, bytes.size() - 1}) {
    EXPECT_EQ(
        message(bytes.substr(0, length)),
        "'f.gz': damaged: its compressed data is cut short at byte " + std::to_string(length));
  }
  EXPECT_EQ(message(bytes + "more"),
            "'f.gz': damaged: something else follows the compressed data at byte " +
                std::to_string(bytes.size()));
  std::string other = bytes;
  other[bytes.size() - 8] = static_cast<char>(other[bytes.size() - 8] ^ 1);  // the checksum
  EXPECT_THAT(message(other), HasSubstr("its compressed data is broken at byte "));
  other = bytes;
  other[2] = 7;  // no method of compression
  EXPECT_THAT(message(other), HasSubstr("its compressed data is broken at byte "));
}

}  // namespace
}  // namespace decent
