// Images as a source: keys, fields, EXIF. tests/cli/test_images.py compares pixels with Pillow's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../support/child_process.h"
#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "decent/data/images/decode.h"
#include "decent/data/images/exif.h"
#include "decent/data/images/listing.h"
#include "decent/data/subset.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::refusal;
using testing::TemporaryFolder;

// 2 by 1 pixels, red and half transparent green.
constexpr unsigned char kPng[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0xf4,
    0x22, 0x7f, 0x8a, 0x00, 0x00, 0x00, 0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8,
    0xcf, 0xc0, 0xf0, 0x1f, 0x08, 0x1b, 0x00, 0x10, 0x79, 0x03, 0x7e, 0x7d, 0x63, 0xce, 0xd7,
    0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

std::string png() { return {reinterpret_cast<const char*>(kPng), sizeof kPng}; }

std::unique_ptr<Source> opened(const std::filesystem::path& path, const Options& given = {}) {
  const DataFormat format = data_format("images");
  Options options = given;
  options.set("path", path);
  return format.open(with_defaults(format.keys, options));
}

void make(const std::filesystem::path& file, const std::string& content) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, content);
}

std::vector<float> x_of(const Source& source, std::int64_t index) {
  const HostArray x = source.read_one(0, index);
  const auto values = x.as<const float>();
  return {values.begin(), values.end()};
}

TEST(Images, AreFloatsAndLabels) {
  const TemporaryFolder folder;
  make(folder / "cat/1.png", png());
  make(folder / "ant/1.png", png());
  const auto source = opened(folder.path());
  EXPECT_EQ(source->size(), 2);
  EXPECT_THAT(source->classes(), ElementsAre("ant", "cat"));
  EXPECT_THAT(source->fields()[0].shape, ElementsAre(3, kAnyExtent, kAnyExtent));
  EXPECT_EQ(source->read_one(1, 1).as<const std::int64_t>()[0], 1);
  EXPECT_THAT(x_of(*source, 0), ElementsAre(1, 0, 0, 1, 0, 0));
  EXPECT_THAT(limited(opened(folder.path()), 1)->classes(), ElementsAre("ant", "cat"));
}

TEST(Images, ComeToOneSizeAndNumberOfChannels) {
  const TemporaryFolder folder;
  make(folder / "cat/1.png", png());
  const auto source = opened(
      folder.path(), {{"size", std::vector<std::int64_t>{1}}, {"channels", std::int64_t{1}}});
  EXPECT_THAT(source->fields()[0].shape, ElementsAre(1, 1, 1));
  float gray = 0;
  source->read(0, std::vector<std::int64_t>{0}, reinterpret_cast<std::byte*>(&gray));
  EXPECT_FLOAT_EQ(gray, (76 + 150) / 510.0F);  // Pillow's gray of red and of green
}

TEST(Images, RefuseKeysThatAreWrong) {
  const TemporaryFolder folder;
  make(folder / "cat/1.png", png());
  EXPECT_EQ(refusal([&] {
              opened(folder.path(), {{"channels", std::int64_t{2}}});
            }),
            "images: channels: expected 1 or 3, not 2");
  EXPECT_EQ(refusal([&] {
              opened(folder.path(), {{"size", std::vector<std::int64_t>{1, 2, 3}}});
            }),
            "images: size: expected n or [height, width], not 3 values");
  const std::string file = (folder / "cat/1.png").string();
  EXPECT_EQ(refusal([&] { opened(file); }),
            "'" + file + "': expected a folder with a folder for each class, or a list, .csv");
}

TEST(Images, RefuseFilesThatAreNone) {
  const TemporaryFolder folder;
  make(folder / "cat/1.png", "");
  make(folder / "cat/2.png", png().substr(0, 40));
  const auto source = opened(folder.path());
  const std::string cat = (folder / "cat").string();
  EXPECT_EQ(refusal([&] { x_of(*source, 0); }),
            "'" + cat + "/1.png': the file is empty; expected a JPEG, PNG or WebP image");
  EXPECT_EQ(refusal([&] { x_of(*source, 1); }),
            "'" + cat + "/2.png': a damaged PNG image: the file ends too early");
}

TEST(Images, KeepToALimitOfPixels) {
  Pixels pixels;
  const std::string file = png();
  EXPECT_EQ(refusal([&] { decode_image(std::as_bytes(std::span(file)), "a", 3, pixels, 1); }),
            "'a': an image of 2 by 1 pixels; the most that is read is 1 pixel");
}

// The largest address space that this process had, in kB.
std::int64_t most_addresses() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word && word != "VmPeak:";) {
  }
  std::int64_t most = 0;
  status >> most;
  return most;
}

TEST(Images, OfPngAllocateNoLengthThatAChunkOnlyClaims) {
  constexpr std::size_t kBehindHeader = 33;
  const std::string file = png().insert(kBehindHeader, std::string("\x40\0\0\0eXIf", 8));  // 1 GiB
  const auto grown = [&] {
    const std::int64_t before = most_addresses();
    Pixels pixels;
    const std::string message =
        refusal([&] { decode_image(std::as_bytes(std::span(file)), "a", 3, pixels); });
    return message + (most_addresses() - before < (1 << 19) ? "" : ", allocated");
  };
  EXPECT_EQ(testing::in_child(grown), "'a': a damaged PNG image: the file ends too early");
}

TEST(Exif, OrientationInBothByteOrders) {
  using namespace std::string_literals;
  const auto of = [](const std::string& bytes) {
    return exif_orientation(std::as_bytes(std::span(bytes)));
  };
  const std::string little = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
  const std::string big = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0"s;
  EXPECT_EQ(of(little), 6);
  EXPECT_EQ(of("Exif\0\0"s + little), 6);
  EXPECT_EQ(of(big), 8);
  for (std::size_t length = 0; length < 20; ++length) EXPECT_LE(of(little.substr(0, length)), 1);
  EXPECT_EQ(of("neither"), kNotSaid);
}

TEST(Exif, TurnsImages) {
  // a b
  // c d
  // e f
  const std::vector<std::string> turned = {"abcdef", "badcfe", "fedcba", "efcdab",
                                           "acebdf", "ecafdb", "fdbeca", "bdface"};
  std::vector<std::uint8_t> spare;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Pixels image{3, 2, 1, {'a', 'b', 'c', 'd', 'e', 'f'}};
    apply_orientation(image, orientation, spare);
    EXPECT_THAT(image.bytes,
                ElementsAreArray(turned.at(static_cast<std::size_t>(orientation) - 1)));
    EXPECT_EQ(image.width, orientation < 5 ? 2 : 3);
  }
}

}  // namespace
}  // namespace decent
