// Files larger than memory: opening and reading them asks for none that grows with them. The files
// have holes, which take no room on the disk.

#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "../support/gzip_bytes.h"
#include "../support/safetensors_bytes.h"
#include "../support/temporary_folder.h"
#include "../support/zip_bytes.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "idx_bytes.h"

namespace decent {
namespace {

using testing::gzip_bytes;
using testing::idx_bytes;
using testing::safetensors_bytes;
using testing::TemporaryFolder;
using testing::zip_bytes;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kSmall = 16 * kMiB;

// Bytes of this process that are not pages of files.
std::int64_t memory_in_use() {
  std::ifstream status("/proc/self/status");
  std::string key;
  std::int64_t kib = 0;
  while (status >> key) {
    if (key == "RssAnon:" && status >> kib) return kib * 1024;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  throw std::runtime_error("/proc/self/status has no RssAnon");
}

struct Opened {
  std::int64_t samples = 0;
  std::int64_t memory = 0;  // that is in use after some samples were read, and was not before
  std::chrono::duration<double> time{};
};

Opened open_and_read(const std::string& format, const Options& options) {
  const DataFormat row = data_format(format);
  const std::int64_t before = memory_in_use();
  const auto start = std::chrono::steady_clock::now();
  const auto source = row.open(with_defaults(row.keys, options));
  const auto time = std::chrono::steady_clock::now() - start;
  const std::int64_t last = source->size() - 1;
  for (std::size_t field = 0; field < source->fields().size(); ++field)
    for (std::int64_t i = 0; i <= 20; ++i) source->read_one(field, last / 20 * i);
  return {.samples = source->size(), .memory = memory_in_use() - before, .time = time};
}

// The npy of an array of bytes, [samples, 1024], that are zero.
std::string npy_of_zeros(std::size_t samples) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                       std::to_string(samples) + ", 1024), }";
  header.resize(127 - 10, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY\x01" + std::string(1, '\0') + static_cast<char>(header.size()) +
                      std::string(1, '\0') + header;
  return bytes + std::string(samples * 1024, '\0');
}

class LargeFiles : public ::testing::Test {
 protected:
  std::filesystem::path put(const char* name, const std::string& start, std::uintmax_t size) {
    write_file(folder_ / name, start);
    std::filesystem::resize_file(folder_ / name, size);
    return folder_ / name;
  }

  TemporaryFolder folder_;
};

TEST_F(LargeFiles, OfTokensAreOpenedAtOnce) {
  const auto file = put("tokens.bin", "", 2'000'000'000);
  const Opened opened =
      open_and_read("tokens", {{"path", Paths{file}}, {"length", std::int64_t{1024}}});
  EXPECT_EQ(opened.samples, 976562);
  EXPECT_LT(opened.memory, kSmall);
  EXPECT_LT(opened.time.count(), 3);
}

TEST_F(LargeFiles, OfTextStayOnDisk) {
  const auto file = put("text", "", 1'000'000'001);
  const Opened opened =
      open_and_read("text", {{"path", Paths{file}}, {"length", std::int64_t{1000}}});
  EXPECT_EQ(opened.samples, 1'000'000);
  EXPECT_LT(opened.memory, kSmall);
}

TEST_F(LargeFiles, OfSafetensorsStayOnDisk) {
  const std::string start = safetensors_bytes(
      R"({"x":{"dtype":"F32","shape":[1000000,3,32,32],"data_offsets":[0,12288000000]}})");
  const auto file = put("f.safetensors", start, start.size() + 12'288'000'000);
  const Opened opened = open_and_read("safetensors", {{"path", Paths{file}}});
  EXPECT_EQ(opened.samples, 1'000'000);
  EXPECT_LT(opened.memory, kSmall);
  EXPECT_LT(opened.time.count(), 3);
}

TEST_F(LargeFiles, OfIdxStayOnDisk) {
  const auto images =
      put("images", idx_bytes(8, {1'000'000, 28, 28}, ""), 16 + 1'000'000 * 28 * 28);
  const auto labels = put("labels", idx_bytes(8, {1'000'000}, ""), 8 + 1'000'000);
  const Opened opened = open_and_read("idx", {{"images", images}, {"labels", labels}});
  EXPECT_EQ(opened.samples, 1'000'000);
  EXPECT_LT(opened.memory, kSmall);  // of that 8 MB of labels
  EXPECT_LT(opened.time.count(), 3);
}

TEST_F(LargeFiles, OfNpzStayOnDiskWhereTheyAreStored) {
  {
    const std::string npy = npy_of_zeros(65536);
    const auto sum = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size()));
    write_file(folder_ / "f.npz", zip_bytes({{.name = "x.npy", .content = npy, .checksum = sum}}));
  }
  const Opened opened = open_and_read("npz", {{"path", Paths{folder_ / "f.npz"}}});
  EXPECT_EQ(opened.samples, 65536);
  EXPECT_LT(opened.memory, kSmall);
}

// Where they are compressed they are in memory: were they not, memory would not be measured here.
TEST_F(LargeFiles, AreInMemoryWhereTheyAreCompressed) {
  constexpr std::uint32_t kSamples = 65536;
  write_file(folder_ / "images",
             gzip_bytes(idx_bytes(8, {kSamples, 32, 32}, std::string(64 * kMiB, 'a'))));
  write_file(folder_ / "labels", idx_bytes(8, {kSamples}, std::string(kSamples, 'a')));
  const Opened opened =
      open_and_read("idx", {{"images", folder_ / "images"}, {"labels", folder_ / "labels"}});
  EXPECT_EQ(opened.samples, kSamples);
  EXPECT_GT(opened.memory, 60 * kMiB);
}

}  // namespace
}  // namespace decent
