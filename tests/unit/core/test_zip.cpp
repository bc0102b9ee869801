#include "decent/core/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/refusal.h"
#include "../support/safetensors_bytes.h"
#include "../support/zip_bytes.h"
#include "decent/core/error.h"
#include "decent/core/zip_edit.h"

namespace decent {
namespace {

using testing::as_bytes;
using ::testing::HasSubstr;
using testing::number_bytes;
using testing::refusal;
using ::testing::StartsWith;
using testing::zip_bytes;
using testing::ZipPart;

constexpr std::uint32_t kChecksum = 0x352441C2;          // CRC-32 of "abc"
const std::string kDeflated("\x4b\x4c\x4a\x06\x00", 5);  // zlib.compress(b"abc", wbits=-15)

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<ZipPart> two() {
  return {
      {.name = "w/first", .content = "abc", .checksum = kChecksum},
      {.name = "w/second", .content = kDeflated, .size = 3, .checksum = kChecksum, .method = 8}};
}

// What reading and taking all contents out says; "read" where it goes well.
std::string outcome(const std::string& bytes) {
  try {
    for (const ZipEntry& entry : read_zip(as_bytes(bytes), "'x.zip'")) {
      zip_content(entry, "'x.zip': entry");
    }
    return "read";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Zip, EntriesAreWhatIsStoredAndInflated) {
  for (const bool is_long : {false, true}) {
    const std::string bytes = zip_bytes(two(), is_long);
    const auto entries = read_zip(as_bytes(bytes), "'x.zip'");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].name, "w/first");
    EXPECT_EQ(entries[1].name, "w/second");
    EXPECT_FALSE(entries[0].deflated);
    EXPECT_TRUE(entries[1].deflated);
    for (const ZipEntry& entry : entries) EXPECT_EQ(text(zip_content(entry, "'x'")), "abc");
  }
}

TEST(Zip, StoredEntriesStayWhereTheyAre) {
  const std::string bytes = zip_bytes(two());
  const auto entries = read_zip(as_bytes(bytes), "'x.zip'");
  EXPECT_EQ(entries[0].data.data(), as_bytes(bytes).data() + bytes.find("abc"));
}

TEST(Zip, EmptyArchivesAndEntriesAreArchives) {
  EXPECT_EQ(outcome(zip_bytes({})), "read");
  EXPECT_EQ(outcome(zip_bytes({{.name = "nothing", .content = ""}})), "read");
}

TEST(Zip, ACommentMayFollow) {
  std::string bytes = zip_bytes(two());
  bytes.replace(bytes.size() - 2, 2, std::string("\x05\x00hello", 7));
  EXPECT_EQ(outcome(bytes), "read");
}

TEST(Zip, NothingThatIsCutShortIsRead) {
  for (const bool is_long : {false, true}) {
    const std::string bytes = zip_bytes(two(), is_long);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THAT(outcome(bytes.substr(0, size)), StartsWith("'x.zip': ")) << size;
    }
  }
}

// What changes no size, place, content or checksum may be read: names, times, versions.
TEST(Zip, EveryChangedByteIsReadOrRefused) {
  for (const bool is_long : {false, true}) {
    const std::string bytes = zip_bytes(two(), is_long);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const int mask : {0x01, 0x80, 0xFF}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ mask);
        const std::string said = outcome(changed);
        if (said != "read") {
          EXPECT_THAT(said, StartsWith("'x.zip'")) << i;
        }
      }
    }
  }
}

TEST(Zip, WhatCannotBeReadIsNamed) {
  std::vector<ZipPart> parts = two();
  parts[1].flags = 1;
  EXPECT_THAT(outcome(zip_bytes(parts)), HasSubstr("'w/second' is encrypted"));
  parts = two();
  parts[0].method = 12;
  EXPECT_THAT(outcome(zip_bytes(parts)), HasSubstr("'w/first' is compressed by a method (12)"));
  parts = two();
  parts[0].checksum = 7;
  EXPECT_THAT(outcome(zip_bytes(parts)), HasSubstr("its checksum is another"));
  parts = two();
  parts[0].size = 4;
  EXPECT_THAT(outcome(zip_bytes(parts)), HasSubstr("'w/first' has two sizes"));
  EXPECT_THAT(outcome("no archive"), HasSubstr("no zip archive, or cut short"));
}

TEST(Zip, MemoryIsOnlyAskedForWhereItCanBeFilled) {
  std::vector<ZipPart> parts = two();
  for (const std::uint64_t size : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    parts[1].size = size;
    EXPECT_THAT(outcome(zip_bytes(parts, true)), HasSubstr("cannot hold as much as it says"));
  }
  for (const std::uint64_t size : {2, 4}) {
    parts[1].size = size;
    EXPECT_THAT(outcome(zip_bytes(parts)), HasSubstr("its compressed data is broken"));
  }
}

// What is said of entries that share bytes or names.
std::string apart(const std::string& bytes) {
  return refusal([&] { read_zip(as_bytes(bytes), "'x'"); });
}

TEST(Zip, EntriesLieApart) {
  std::string bytes = zip_bytes(two());
  EXPECT_EQ(apart(bytes), "accepted");
  EXPECT_EQ(apart(zip_bytes({})), "accepted");
  std::vector<ZipPart> parts = two();
  parts[1].name = parts[0].name;
  EXPECT_EQ(apart(zip_bytes(parts)), "'x': damaged: entries 'w/first' and 'w/first' have one name");
  const std::size_t first = bytes.find("PK\x01\x02");
  const std::size_t second = bytes.find("PK\x01\x02", first + 1);
  std::string both = bytes;
  both.replace(second + 42, 4, bytes.substr(first + 42, 4));  // where the entry begins
  EXPECT_THAT(apart(both), HasSubstr("lie over one another"));
  std::string beyond = bytes;
  for (const std::size_t size : {20, 24}) beyond.replace(second + size, 4, number_bytes(60, 4));
  beyond[second + 10] = 0;  // stored, so that both sizes are those of the data
  EXPECT_EQ(apart(beyond), "'x': damaged: entry 'w/second' lies over the directory");
}

// The archive with the entries; every entry of it can be taken out.
std::string with_entries(const std::string& bytes, const std::vector<ZipAddition>& added) {
  std::string edited;
  std::uint64_t copied = 0;
  for (const ZipEdit& edit : edits_to_add(as_bytes(bytes), added, "'x'")) {
    edited += bytes.substr(copied, edit.begin - copied) + edit.bytes;
    copied = edit.end;
  }
  EXPECT_EQ(copied, bytes.size());
  EXPECT_EQ(outcome(edited), "read");
  return edited;
}

TEST(Zip, AnotherEntryIsAddedOrTakesThePlaceOfOne) {
  for (const bool is_long : {false, true}) {
    const std::string bytes = zip_bytes(two(), is_long);
    const std::string more = with_entries(bytes, {{"w/third", "xyz"}});
    const std::string replaced = with_entries(more, {{"w/first", "another"}});
    for (const auto& [archive, first] : {std::pair(more, "abc"), std::pair(replaced, "another")}) {
      const auto entries = read_zip(as_bytes(archive), "'x'");
      ASSERT_EQ(entries.size(), 3u);
      for (const ZipEntry& entry : entries) {
        const std::string expected = entry.name == "w/third"   ? "xyz"
                                     : entry.name == "w/first" ? first
                                                               : "abc";
        EXPECT_EQ(text(zip_content(entry, "'x'")), expected) << entry.name;
      }
    }
    EXPECT_EQ(with_entries(more, {{"w/third", "zyx"}}).size(), more.size())
        << "nothing of the old one";
    const std::vector<ZipAddition> both = {{"w/first", "1"}, {"w/second", "12"}};
    const std::string rewritten = with_entries(with_entries(bytes, both), both);
    EXPECT_EQ(rewritten, with_entries(bytes, both)) << "both lie behind all others";
    for (const ZipEntry& entry : read_zip(as_bytes(rewritten), "'x'"))
      EXPECT_EQ(text(zip_content(entry, "'x'")), entry.name == "w/first" ? "1" : "12");
  }
  EXPECT_EQ(refusal([] { edits_to_add(as_bytes(zip_bytes({})), {}, "'x'"); }),
            "'x': it has no entries");
}

TEST(Zip, ChecksumsAreFoundWhereTheyAre) {
  // Once in the directory, and once before the data or behind it, with a mark or without.
  for (const std::string& descriptor :
       {std::string(), "PK\x07\x08" + number_bytes(kChecksum, 4), number_bytes(kChecksum, 4)}) {
    const bool has_descriptor = !descriptor.empty();
    std::string bytes = zip_bytes({{.name = "w",
                                    .content = "abc" + descriptor,
                                    .checksum = kChecksum,
                                    .flags = static_cast<std::uint16_t>(has_descriptor ? 8 : 0)}});
    const std::size_t directory = bytes.find("PK\x01\x02");
    for (const std::size_t size : {20, 24}) bytes.replace(directory + size, 4, number_bytes(3, 4));
    const ZipEntry entry = read_zip(as_bytes(bytes), "'x'").at(0);
    const auto places = checksum_places(as_bytes(bytes), entry, "'x'");
    ASSERT_EQ(places.size(), 2u);
    for (const std::uint64_t place : places) {
      EXPECT_EQ(bytes.substr(place, 4), number_bytes(kChecksum, 4));
    }
    EXPECT_EQ(places[1] > bytes.find("abc"), has_descriptor);
    bytes[places[1]] = 'x';
    EXPECT_EQ(refusal([&] { checksum_places(as_bytes(bytes), entry, "'x'"); }),
              "'x': damaged: the checksum of entry 'w' is not where it should be");
  }
}

}  // namespace
}  // namespace decent
