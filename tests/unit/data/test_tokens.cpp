// Windows of files of ids and of text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "../support/gzip_bytes.h"
#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"

namespace decent {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using testing::gzip_bytes;
using ::testing::HasSubstr;
using testing::refusal;
using testing::TemporaryFolder;
using Ids = std::vector<std::int64_t>;

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

std::string llm_c_header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header);
}

Ids read(const Source& source, std::size_t field, const Ids& indices) {
  Ids ids(indices.size() * source.fields()[field].sample_bytes() / sizeof(std::int64_t));
  source.read(field, indices, reinterpret_cast<std::byte*>(ids.data()));
  return ids;
}

class TokenFiles : public ::testing::Test {
 protected:
  std::filesystem::path put(const char* name, const std::string& content) {
    write_file(folder_ / name, content);
    return folder_ / name;
  }
  std::unique_ptr<Source> open(const Paths& path, std::int64_t length, const Options& others = {},
                               const std::string& format = "tokens") {
    Options given = others;
    given.set("path", path);
    given.set("length", length);
    return data_format(format).open(with_defaults(data_format(format).keys, given));
  }
  // Without the folder.
  std::string message(const std::string& content, const Options& others = {},
                      const std::string& format = "tokens") {
    const std::filesystem::path file = put("f.bin", content);
    std::string text = refusal([&] { open({file}, 2, others, format); });
    const std::string folder = folder_.path().string() + "/";
    if (const auto at = text.find(folder); at != std::string::npos) text.erase(at, folder.size());
    return text;
  }

  TemporaryFolder folder_;
};

// Sample i is elements [i*stride, i*stride+length], y one later; the last whose y is inside.
TEST_F(TokenFiles, GiveWindowsByTheirClosedForm) {
  for (std::int64_t count = 2; count <= 12; ++count) {
    std::vector<std::uint16_t> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), std::uint16_t{100});
    const auto file = put("f.bin", bytes_of(tokens));
    for (std::int64_t length = 1; length < count; ++length) {
      for (std::int64_t stride = 1; stride <= 5; ++stride) {
        const auto source = open({file}, length, {{"stride", stride}});
        std::int64_t samples = 0;
        while (samples * stride + length < count) ++samples;
        ASSERT_EQ(source->size(), samples);
        for (std::int64_t sample = 0; sample < samples; ++sample) {
          Ids x(static_cast<std::size_t>(length));
          std::iota(x.begin(), x.end(), 100 + sample * stride);
          Ids y(x.size());
          std::iota(y.begin(), y.end(), 100 + sample * stride + 1);
          ASSERT_EQ(read(*source, 0, {sample}), x);
          ASSERT_EQ(read(*source, 1, {sample}), y);
        }
      }
    }
  }
}

TEST_F(TokenFiles, HaveFieldsOfInt64AndAStrideOfTheirLength) {
  const auto source = open({put("f.bin", bytes_of<std::uint16_t>({0, 1, 2, 65535, 4, 5, 6}))}, 3);
  EXPECT_EQ(source->size(), 2);
  for (const std::size_t field : {0, 1}) {
    EXPECT_EQ(source->fields()[field].name, field == 0 ? "x" : "y");
    EXPECT_EQ(source->fields()[field].dtype, DType::int64);
    EXPECT_THAT(source->fields()[field].shape, ElementsAre(3));
  }
  EXPECT_THAT(read(*source, 0, {1, 0}), ElementsAre(65535, 4, 5, 0, 1, 2));
  EXPECT_THAT(read(*source, 1, {1, 0}), ElementsAre(4, 5, 6, 1, 2, 65535));
}

// More than what is read at once.
TEST_F(TokenFiles, MayHaveLongSamples) {
  std::vector<std::uint32_t> tokens(20001);
  std::iota(tokens.begin(), tokens.end(), 4000000000U);
  const auto source = open({put("f.bin", bytes_of(tokens))}, 10000, {{"dtype", "uint32"s}});
  EXPECT_EQ(source->size(), 2);
  Ids wanted(10000);
  std::iota(wanted.begin(), wanted.end(), 4000010001);
  EXPECT_EQ(read(*source, 1, {1}), wanted);
}

TEST_F(TokenFiles, KeepShardsApart) {
  const auto a = put("a-0.bin", bytes_of<std::uint16_t>({1, 2, 3, 4, 5, 6}));
  const auto b = put("a-1.bin", llm_c_header(20240520, 1, 3) + bytes_of<std::uint16_t>({7, 8, 9}));
  for (const Paths& path : {Paths{a, b}, Paths{folder_ / "a-*.bin"}}) {
    const auto source = open(path, 2);
    EXPECT_EQ(source->size(), 3);
    EXPECT_THAT(read(*source, 0, {0, 1, 2}), ElementsAre(1, 2, 3, 4, 7, 8));
    EXPECT_THAT(read(*source, 1, {0, 1, 2}), ElementsAre(2, 3, 4, 5, 8, 9));
  }
}

TEST_F(TokenFiles, MayHaveTheHeaderOfLlmC) {
  const std::string small = llm_c_header(20240520, 1, 3) + bytes_of<std::uint16_t>({7, 8, 9});
  const std::string wide = llm_c_header(20240801, 7, 3) + bytes_of<std::uint32_t>({7, 128255, 9});
  for (const char* header : {"auto", "llm.c"}) {
    EXPECT_THAT(read(*open({put("f", small)}, 2, {{"header", std::string(header)}}), 1, {0}),
                ElementsAre(8, 9));
    EXPECT_THAT(read(*open({put("f", wide)}, 2, {{"header", std::string(header)}}), 1, {0}),
                ElementsAre(128255, 9));
  }
  EXPECT_THAT(read(*open({put("f", wide)}, 2, {{"dtype", "uint32"s}}), 0, {0}),
              ElementsAre(7, 128255));
  // As ids.
  const auto bare = open({put("f", small)}, 2, {{"header", "none"s}});
  EXPECT_EQ(bare->size(), (512 + 3 - 1) / 2);
  EXPECT_THAT(read(*bare, 0, {0}), ElementsAre(20240520 & 0xFFFF, 20240520 >> 16));
}

TEST_F(TokenFiles, AreRefusedWhereTheHeaderIsWrong) {
  const std::string data = bytes_of<std::uint16_t>({7, 8, 9});
  EXPECT_EQ(message(llm_c_header(20240520, 2, 3) + data),
            "'f.bin': byte 4: version 2 of llm.c's header; expected 1 (header: none for ids "
            "without a header)");
  EXPECT_EQ(
      message(llm_c_header(20240520, 1, 4) + data),
      "'f.bin': byte 8: damaged: its header says 4 uint16 ids, and from byte 1024 on it has 6 "
      "bytes");
  for (const std::int32_t count : {2, -1, 1 << 30}) {
    EXPECT_THAT(message(llm_c_header(20240520, 1, count) + data), HasSubstr("byte 8: damaged"));
  }
  EXPECT_THAT(message(llm_c_header(20240801, 7, 1) + data), HasSubstr("says 1 uint32 id, and"));
  EXPECT_EQ(message(llm_c_header(20240520, 1, 3).substr(0, 100)),
            "'f.bin': ends at byte 100, within llm.c's header of 1024 bytes");
  EXPECT_EQ(message(llm_c_header(20240520, 1, 3) + data, {{"dtype", "uint32"s}}),
            "'f.bin': byte 0: its header says uint16, dtype says uint32");
  EXPECT_EQ(message(data, {{"header", "llm.c"s}}),
            "'f.bin': byte 0: no header of llm.c, which begins with the number 20240520 (ids of "
            "uint16) or 20240801 (uint32); it begins with 524295");
}

TEST_F(TokenFiles, AreRefusedWhereTheyAreSomethingElse) {
  EXPECT_EQ(message("abc"), "'f.bin': has 3 bytes, no whole number of uint16 ids");
  EXPECT_THAT(message("abcdef", {{"dtype", "uint32"s}}), HasSubstr("whole number of uint32 ids"));
  EXPECT_EQ(message("\x93NUMPY\x01......"),
            "'f.bin': is a .npy file; expected the ids alone: "
            "array.astype('uint16').tofile(FILE)");
  EXPECT_THAT(message(gzip_bytes("abcd")), HasSubstr("gunzip -k FILE"));
  EXPECT_THAT(message(llm_c_header(20240522, 1, 3)), HasSubstr("multiple-choice questions"));
  EXPECT_EQ(message(""),
            "'f.bin': holds 0 tokens, too few for one sample: length 2 and one more "
            "for y");
  EXPECT_THAT(message("abcd"), HasSubstr("holds 2 tokens, too few"));
  EXPECT_EQ(message("abcdef"), "accepted");
}

TEST_F(TokenFiles, AreCheckedAgainstAVocabulary) {
  std::vector<std::uint16_t> tokens(10001, 49);
  tokens[9000] = 51;
  tokens[9500] = 50;
  const auto file = put("f.bin", bytes_of(tokens));
  EXPECT_EQ(read(*open({file}, 9999, {{"vocabulary", std::int64_t{52}}}), 0, {0})[9000], 51);
  const auto source = open({file}, 1000, {{"vocabulary", std::int64_t{50}}});
  EXPECT_EQ(read(*source, 0, {0, 8}), Ids(2000, 49));
  const std::string wanted = "': byte 18000: id 51; a vocabulary of 50 has ids below that";
  EXPECT_THAT(refusal([&] { read(*source, 1, {8}); }), HasSubstr(wanted));
  EXPECT_THAT(refusal([&] { read(*source, 0, {9}); }), HasSubstr("f.bin" + wanted));
}

TEST_F(TokenFiles, TellThatTheyWereTruncated) {
  const auto file = put("f.bin", std::string(100000, 'a'));
  const auto source = open({file}, 1000);
  std::filesystem::resize_file(file, 4096);
  EXPECT_THAT(refusal([&] { read(*source, 0, {40}); }), HasSubstr("truncated"));
}

TEST_F(TokenFiles, MayBeText) {
  const auto source =
      open({put("f.txt", "h\xc3\xb6ren")}, 2, {{"stride", std::int64_t{1}}}, "text");
  EXPECT_EQ(source->size(), 4);
  EXPECT_THAT(read(*source, 0, {0, 3}), ElementsAre('h', 0xc3, 'r', 'e'));
  EXPECT_THAT(read(*source, 1, {0, 3}), ElementsAre(0xc3, 0xb6, 'e', 'n'));
  EXPECT_EQ(message("ab", {}, "text"),
            "'f.bin': holds 2 bytes, too few for one sample: length 2 and one more for y");
  EXPECT_THAT(message(gzip_bytes("some text"), {}, "text"), HasSubstr("gunzip -k FILE"));
}

}  // namespace
}  // namespace decent
