// MNIST's files as a data source.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "../support/gzip_bytes.h"
#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "idx_bytes.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using testing::gzip_bytes;
using ::testing::HasSubstr;
using testing::idx_bytes;
using testing::refusal;
using ::testing::StartsWith;
using testing::TemporaryFolder;

constexpr char kBytes = 0x08;

template <class T>
std::vector<T> read(const Source& source, std::size_t field,
                    const std::vector<std::int64_t>& indices) {
  std::vector<T> values(indices.size() * source.fields()[field].sample_bytes() / sizeof(T));
  source.read(field, indices, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// The files of a test; messages without their folder.
class IdxFiles : public ::testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& images, const std::string& labels) {
    write_file(folder_ / "images", images);
    write_file(folder_ / "labels", labels);
    return data_format("idx").open(
        {{"images", folder_ / "images"}, {"labels", folder_ / "labels"}});
  }
  std::string message(const std::string& images, const std::string& labels) {
    std::string text = refusal([&] { open(images, labels); });
    const std::string folder = folder_.path().string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.erase(at, folder.size());
    return text;
  }

  TemporaryFolder folder_;
  std::string images_ = idx_bytes(kBytes, {3, 1, 2}, std::string("\x00\x01\x7f\x80\xfe\xff", 6));
  std::string labels_ = idx_bytes(kBytes, {3}, std::string("\x07\x00\xff", 3));
};

TEST_F(IdxFiles, GiveImagesFromZeroToOneAndTheirLabels) {
  for (const bool compressed : {false, true}) {
    const auto source =
        compressed ? open(gzip_bytes(images_), gzip_bytes(labels_)) : open(images_, labels_);
    EXPECT_EQ(source->size(), 3);
    ASSERT_EQ(source->fields().size(), 2U);
    EXPECT_EQ(source->fields()[0].name, "x");
    EXPECT_EQ(source->fields()[0].dtype, DType::float32);
    EXPECT_THAT(source->fields()[0].shape, ElementsAre(1, 1, 2));
    EXPECT_EQ(source->fields()[1].name, "y");
    EXPECT_EQ(source->fields()[1].dtype, DType::int64);
    EXPECT_TRUE(source->fields()[1].shape.empty());
    EXPECT_THAT(read<float>(*source, 0, {2, 0, 1}),
                ElementsAre(254 / 255.0F, 1, 0, 1 / 255.0F, 127 / 255.0F, 128 / 255.0F));
    EXPECT_THAT(read<std::int64_t>(*source, 1, {2, 0, 1}), ElementsAre(255, 7, 0));
  }
}

TEST_F(IdxFiles, MayHaveChannels) {
  const auto source = open(idx_bytes(kBytes, {2, 3, 1, 1}, "abcdef"), idx_bytes(kBytes, {2}, "ab"));
  EXPECT_THAT(source->fields()[0].shape, ElementsAre(3, 1, 1));
  EXPECT_THAT(read<float>(*source, 0, {1}), ElementsAre('d' / 255.0F, 'e' / 255.0F, 'f' / 255.0F));
}

// More than what is read at once.
TEST_F(IdxFiles, MayBeLarge) {
  std::string pixels(std::size_t{2} * 100 * 90, '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * 7 % 251);
  const auto source = open(idx_bytes(kBytes, {2, 100, 90}, pixels), idx_bytes(kBytes, {2}, "ab"));
  const std::vector<float> read_back = read<float>(*source, 0, {0, 1});
  for (std::size_t i = 0; i < pixels.size(); ++i)
    ASSERT_EQ(read_back[i], static_cast<float>(i * 7 % 251) / 255.0F) << i;
}

TEST_F(IdxFiles, HaveLabelsOfAnyIntegers) {
  const std::string images = idx_bytes(kBytes, {2, 1, 1}, "ab");
  const auto labels = [&](char type, std::string_view data) {
    return read<std::int64_t>(*open(images, idx_bytes(type, {2}, data)), 1, {0, 1});
  };
  EXPECT_THAT(labels(0x09, "\xff\x05"), ElementsAre(-1, 5));
  EXPECT_THAT(labels(0x0b, std::string_view("\x01\x02\xff\xfe", 4)), ElementsAre(258, -2));
  EXPECT_THAT(labels(0x0c, std::string_view("\x00\x01\x00\x02\xff\xff\xff\xfd", 8)),
              ElementsAre(65538, -3));
}

TEST_F(IdxFiles, AreRefusedWithTheByteWhereTheyAreNoIdx) {
  EXPECT_EQ(
      message("\x89PNG....", labels_),
      "'images': not an IDX file: it begins with the bytes '89 50 4e 47'; expected 00 00, the "
      "type of the elements (08: bytes) and the number of dimensions");
  EXPECT_THAT(message("", labels_), StartsWith("'images': not an IDX file: it begins with "));
  EXPECT_EQ(
      message(idx_bytes(0x0d, {1, 1, 1}, "abcd"), labels_),
      "'images': byte 2: elements of type 0d are floating point; expected integers (08: bytes, "
      "09, 0b or 0c). Formats npz and safetensors take any");
  EXPECT_THAT(message(idx_bytes(0x0a, {1}, "a"), labels_), HasSubstr("type 0a are unknown"));
  EXPECT_EQ(message(idx_bytes(kBytes, {}, ""), labels_),
            "'images': byte 3: 0 dimensions; expected 1 to 8");
  EXPECT_EQ(message(images_.substr(0, 11), labels_),
            "'images': ends at byte 11, within its header of 16 bytes");
  EXPECT_EQ(message(idx_bytes(kBytes, {4000000000, 4000000000, 4000000000}, ""), labels_),
            "'images': byte 4: the shape [4000000000, 4000000000, 4000000000] is too large");
}

TEST_F(IdxFiles, AreRefusedWhereTheirSizeIsAnother) {
  EXPECT_EQ(message(images_ + "a", labels_),
            "'images': damaged: its header asks for 6 bytes of elements, shape [3, 1, 2], and from "
            "byte 16 on it has 7");
  EXPECT_THAT(message(images_.substr(0, 20), labels_), HasSubstr("from byte 16 on it has 4"));
  EXPECT_EQ(message(gzip_bytes(images_ + "a"), labels_),
            "'images': damaged: its header asks for 6 bytes of elements, shape [3, 1, 2], and it "
            "has more");
  const std::string long_labels = idx_bytes(kBytes, {100}, std::string(100, 'a'));
  EXPECT_THAT(message(gzip_bytes(images_), gzip_bytes(long_labels + std::string(50000, 'a'))),
              HasSubstr("asks for 100 bytes of elements, shape [100], and it has more"));
  EXPECT_THAT(message(gzip_bytes(images_.substr(0, 20)), labels_), HasSubstr("and it has 4"));
  EXPECT_THAT(message(gzip_bytes(images_).substr(0, 30), labels_),
              HasSubstr("'images': damaged: its compressed data is cut short at byte 30"));
}

TEST_F(IdxFiles, AreRefusedWhereTheyDoNotBelongTogether) {
  EXPECT_EQ(message(images_, idx_bytes(kBytes, {2}, "ab")),
            "'images' has 3 images, 'labels' has 2 labels; expected one label for each image");
  EXPECT_EQ(message(labels_, images_),
            "'images': expected images, [samples, height, width] or [samples, channels, height, "
            "width], it has shape [3]");
  EXPECT_EQ(message(images_, images_),
            "'labels': expected labels, [samples], it has shape [3, 1, 2]");
  EXPECT_THAT(message(idx_bytes(0x0b, {1, 1, 1}, "ab"), labels_),
              HasSubstr("expected images of bytes (type 08)"));
  EXPECT_THAT(message(idx_bytes(kBytes, {0, 1, 2}, ""), idx_bytes(kBytes, {0}, "")),
              HasSubstr("holds no samples"));
}

// Neither asks for memory: the test would need some terabytes.
TEST_F(IdxFiles, AreNoBombs) {
  EXPECT_THAT(message(gzip_bytes(idx_bytes(kBytes, {1000000, 2000, 2000}, "")), labels_),
              HasSubstr("cannot hold as much"));
  // A file with holes that could hold more than there is memory.
  write_file(folder_ / "large",
             gzip_bytes(idx_bytes(kBytes, {1000000, 2000, 2000}, std::string(1000, 'a'))));
  std::filesystem::resize_file(folder_ / "large", 4'000'000'000);
  write_file(folder_ / "labels", labels_);
  EXPECT_THAT(
      refusal([&] {
        data_format("idx").open({{"images", folder_ / "large"}, {"labels", folder_ / "labels"}});
      }),
      HasSubstr("more than this machine has memory; decompress it with gunzip"));
}

TEST_F(IdxFiles, TellThatTheyWereTruncated) {
  const auto source =
      open(idx_bytes(kBytes, {2, 100, 100}, std::string(20000, 'a')), idx_bytes(kBytes, {2}, "ab"));
  std::filesystem::resize_file(folder_ / "images", 4096);
  EXPECT_THAT(refusal([&] { read<float>(*source, 0, {1}); }), HasSubstr("truncated"));
}

}  // namespace
}  // namespace decent
