// Samples in tar archives, and paths with braces. tests/cli/test_webdataset.py compares them with
// those of the package webdataset.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <utility>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "decent/data/images/tar_shard.h"
#include "decent/data/shards.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using testing::refusal;
using testing::TemporaryFolder;

using Members = std::vector<std::pair<std::string, std::string>>;

// POSIX ustar. `type` is 0 for a file, 1 and 2 for links.
std::string ustar_header(const std::string& name, std::size_t size, char type = '0') {
  std::string header = name;
  header.resize(512);
  const auto put = [&](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  std::array<char, 12> octal{};
  std::snprintf(octal.data(), octal.size(), "%011zo", size);
  put(100, "0000644");
  put(124, octal.data());
  put(148, "        ");  // the checksum counts as blanks
  put(156, std::string(1, type));
  put(257, std::string("ustar\0"
                       "00",
                       8));
  const unsigned sum =
      std::accumulate(header.begin(), header.end(), 0U,
                      [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  std::snprintf(octal.data(), octal.size(), "%06o", sum);
  put(148, std::string(octal.data(), 7));
  return header;
}

std::string without_end(const Members& members) {
  std::string archive;
  for (const auto& [name, content] : members) {
    archive += ustar_header(name, content.size()) + content;
    archive.resize((archive.size() + 511) / 512 * 512);
  }
  return archive;
}

std::string tar_of(const Members& members) { return without_end(members) + std::string(1024, 0); }

std::vector<ShardSample> samples_in(const std::string& archive, const ShardReading& reading) {
  return read_tar_shard(std::as_bytes(std::span(archive)), "a.tar", reading);
}

const ShardReading kByClass{.images = {"jpg", "png"}, .label = "cls"};
const ShardReading kByJson{.images = {"jpg"}, .label = "json", .json_key = "class"};

std::string refusal_of_tar(const std::string& archive, const ShardReading& reading = kByClass) {
  return refusal([&] { samples_in(archive, reading); });
}

TEST(TarShard, GroupsNeighboursWithOneKey) {
  const std::string archive = tar_of({{"__meta__", "1"},
                                      {"d.e/a.JPG", "one"},
                                      {"d.e/a.cls", " 7\n"},
                                      {"d.e/a.seg.png", "a mask"},
                                      {"README", "no dot"},
                                      {"d.e/.b.jpg", "no key"},
                                      {"b.cls", "ant"},
                                      {"b.png", "four"}});
  const auto samples = samples_in(archive, kByClass);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].name, "d.e/a.JPG");
  EXPECT_EQ(archive.substr(samples[0].offset, samples[0].size), "one");
  EXPECT_EQ(samples[0].label, "7");
  EXPECT_EQ(samples[1].name, "b.png");
  EXPECT_EQ(archive.substr(samples[1].offset, samples[1].size), "four");
  EXPECT_EQ(samples[1].label, "ant");
}

TEST(TarShard, TakesLabelsOfJson) {
  const auto label = [](const std::string& json) {
    return samples_in(tar_of({{"a.jpg", "1"}, {"a.json", json}}), kByJson).at(0).label;
  };
  EXPECT_EQ(label(R"({"class": 3, "other": [1]})"), "3");
  EXPECT_EQ(label(R"({"class": "ant"})"), "ant");
  const auto message = [](const std::string& json) {
    return refusal_of_tar(tar_of({{"a.jpg", "1"}, {"a.json", json}}), kByJson);
  };
  EXPECT_EQ(message("{"), "'a.tar', member 'a.json': not a JSON object");
  EXPECT_EQ(message("[]"), "'a.tar', member 'a.json': not a JSON object");
  EXPECT_EQ(message("{}"), "'a.tar', member 'a.json': no key 'class'");
  EXPECT_EQ(message(R"({"class": 0.5})"),
            "'a.tar', member 'a.json': 'class' is neither a whole number nor a text");
}

TEST(TarShard, NeedsNoLabelForPredictions) {
  const ShardReading reading{.images = {"jpg"}};
  EXPECT_EQ(samples_in(tar_of({{"a.jpg", "1"}, {"b.jpg", "2"}}), reading).size(), 2U);
}

TEST(TarShard, RefusesSamplesThatAreNotWhole) {
  EXPECT_EQ(refusal_of_tar(tar_of({{"a.jpg", "1"}, {"a.txt", "1"}})),
            "'a.tar', sample 'a': it has no label, .cls; its neighbouring members end in jpg, txt "
            "(`label` names the ending; null: there are no labels)");
  EXPECT_EQ(
      refusal_of_tar(tar_of({{"a.gif", "1"}, {"a.cls", "1"}})),
      "'a.tar', sample 'a': it has no image, .jpg or .png; its neighbouring members end in gif, "
      "cls");
  EXPECT_EQ(refusal_of_tar(tar_of({{"a.jpg", "1"}, {"a.png", "1"}})),
            "'a.tar', member 'a.png': the second image of its sample; say which with `image`");
  EXPECT_EQ(refusal_of_tar(tar_of({{"a.jpg", "1"}, {"a.JPG", "1"}})),
            "'a.tar', member 'a.JPG': the sample has two of this ending");
  const Members one = {{"a.jpg", "1"}, {"a.cls", "1"}};
  const std::string both = without_end(one) + without_end({{"b.jpg", "1"}, {"b.cls", "1"}});
  EXPECT_EQ(
      refusal_of_tar(both + tar_of(one)),
      "'a.tar', sample 'a': its members are not neighbours, or two samples have this key; tar "
      "--sort=name packs members in order");
  EXPECT_EQ(refusal_of_tar(tar_of({{"a.cls", "\n"}})),
            "'a.tar', member 'a.cls': the label is empty");
  EXPECT_EQ(refusal_of_tar(tar_of({{"a.cls", "\xe4"}})),
            "'a.tar', member 'a.cls': the label '?' is not UTF-8");
  EXPECT_EQ(refusal_of_tar(tar_of({{"README", ""}})), "'a.tar' has no samples");
}

TEST(TarShard, RefusesArchivesThatAreNotWhole) {
  const std::string whole = tar_of({{"a.jpg", std::string(600, 'x')}, {"a.cls", "1"}});
  EXPECT_EQ(refusal_of_tar(""),
            "'a.tar': not a tar archive (Unrecognized archive format); a compressed one must be "
            "unpacked first");
  EXPECT_EQ(refusal_of_tar(std::string("\x1f\x8b\x08", 3)),
            "'a.tar' is compressed by gzip, not a tar archive: gunzip decompresses it");
  EXPECT_EQ(refusal_of_tar(whole.substr(0, 700)),
            "'a.tar': truncated: member 'a.jpg' has 600 bytes from byte 512 on, the file ends at "
            "byte 700");
  EXPECT_EQ(refusal_of_tar(whole.substr(0, whole.size() - 1024)),
            "'a.tar': truncated: it ends after member 'a.cls', without the blocks of zeros that "
            "close an archive");
  std::string damaged = whole;
  damaged[1536] = 'b';  // the first letter of the second name
  EXPECT_EQ(refusal_of_tar(damaged), "'a.tar': damaged after member 'a.jpg': Damaged tar archive");
  EXPECT_EQ(refusal_of_tar(whole + whole),
            "'a.tar': there are " + std::to_string(whole.size()) +
                " bytes behind the end of the archive, after member 'a.cls': an unfinished "
                "download, or archives that cat has joined (tar --concatenate joins them)");
  EXPECT_EQ(refusal_of_tar(ustar_header("a.jpg", 0, '2') + whole),
            "'a.tar': member 'a.jpg' is a link; tar --dereference --hard-dereference packs what it "
            "leads to");
}

std::unique_ptr<Source> shards_as(const std::filesystem::path& path, const Reading& reading) {
  const DataFormat format = data_format("webdataset");
  return format.open_as(with_defaults(format.keys, {{"path", Paths{path}}}), reading);
}

std::vector<std::int64_t> labels_of_all(const Source& source) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < source.size(); ++i)
    labels.push_back(source.read_one(1, i).as<const std::int64_t>()[0]);
  return labels;
}

TEST(Webdataset, NumbersClassesOverAllShards) {
  const TemporaryFolder folder;
  write_file(folder / "s-0.tar", tar_of({{"a.jpg", "1"}, {"a.cls", "cat"}}));
  write_file(folder / "s-1.tar",
             tar_of({{"b.jpg", "1"}, {"b.cls", "ant"}, {"c.jpg", "1"}, {"c.cls", "cat"}}));
  const auto path = folder / "s-{0..1}.tar";
  const auto source = shards_as(path, {});
  EXPECT_THAT(source->classes(), ElementsAre("ant", "cat"));
  EXPECT_THAT(labels_of_all(*source), ElementsAre(1, 0, 1));
  EXPECT_EQ(source->origin_of(1).file, (folder / "s-1.tar").string() + "/b.jpg");
  EXPECT_EQ(shards_as(path, {.needs_target = false})->fields().size(), 1U);
  const std::vector<std::string> known = {"bee", "cat", "ant"};
  EXPECT_THAT(labels_of_all(*shards_as(path, {.classes = known})), ElementsAre(1, 2, 1));
  EXPECT_EQ(refusal([&] {
              shards_as(path, {.classes = std::vector<std::string>{"cat"}, .where = "data.train"});
            }),
            "'" + (folder / "s-1.tar").string() +
                "/b.jpg': label 'ant' is no class of data.train, which has cat");
}

TEST(Webdataset, TakesNumbersAsTheyAre) {
  const TemporaryFolder folder;
  write_file(folder / "s.tar",
             tar_of({{"a.jpg", "1"}, {"a.cls", "7"}, {"b.jpg", "1"}, {"b.cls", "0"}}));
  const auto source = shards_as(folder / "s.tar", {});
  EXPECT_TRUE(source->classes().empty());
  EXPECT_THAT(labels_of_all(*source), ElementsAre(7, 0));
}

TEST(ExpandGlobs, ExpandsBraces) {
  const TemporaryFolder folder;
  const auto expanded = [](const std::string& path) {
    std::vector<std::string> files;
    for (const auto& file : expand_globs(Paths{path})) files.push_back(file.string());
    return files;
  };
  EXPECT_THAT(expanded("a{8..10}.x"), ElementsAre("a8.x", "a9.x", "a10.x"));
  EXPECT_THAT(expanded("a{099..101}"), ElementsAre("a099", "a100", "a101"));
  EXPECT_THAT(expanded("{1..0}{x,,y}"), ElementsAre("1x", "1", "1y", "0x", "0", "0y"));
  EXPECT_THAT(expanded("{a}{1..b}{"), ElementsAre("{a}{1..b}{"));
  EXPECT_EQ(refusal([&] { expanded("a{0..999}{0..1000}"); }),
            "'a{0..999}{0..1000}': its braces are more than a million files");
  std::filesystem::create_directory(folder / "{a,b}");
  write_file(folder / "{a,b}" / "c{1,2}", "");
  const std::string there = (folder / "{a,b}").string();
  EXPECT_THAT(expanded(there + "/c{1,2}"), ElementsAre(there + "/c{1,2}"));
  EXPECT_THAT(expanded(there + "/d{1,2}"), ElementsAre(there + "/d1", there + "/d2"));
}

}  // namespace
}  // namespace decent
