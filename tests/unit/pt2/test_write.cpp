#include "decent/pt2/write/write.h"

#include <cstring>
#include <numeric>

#include "archive_files.h"
#include "decent/pt2/archive/records.h"

namespace decent::pt2 {
namespace {

using testing::archive_bytes;
using testing::ArchiveFiles;
using ::testing::ElementsAre;
using testing::fixture;
using testing::small_records;

bool keep(const ExportedProgram&, const std::string&, const Payload&, std::span<std::byte>) {
  return false;
}

// Numbers of float32 in the order of the tensor.
void put_numbers(std::span<std::byte> elements, float first) {
  std::vector<float> numbers(elements.size() / sizeof(float));
  std::iota(numbers.begin(), numbers.end(), first);
  std::memcpy(elements.data(), numbers.data(), elements.size());
}

std::vector<float> numbers_in(std::span<const std::byte> storage) {
  std::vector<float> numbers(storage.size() / sizeof(float));
  std::memcpy(numbers.data(), storage.data(), storage.size());
  return numbers;
}

// Every checksum is right, and the places of all records are those of the original.
void check_whole(const std::filesystem::path& path) {
  const std::string bytes = read_text(path);
  const auto all = std::as_bytes(std::span(bytes));
  for (const ZipEntry& entry : read_zip(all, "'x'")) {
    check_stored(entry, "'x'");
    EXPECT_EQ(checksum_places(all, entry, "'x'").size(), 2u);
  }
}

class Writing : public ArchiveFiles {
 public:
  std::filesystem::path out() const { return folder.path() / "out.pt2"; }
};

TEST_F(Writing, WithoutNewElementsTheFileIsTheSame) {
  for (const bool is_long : {false, true}) {
    const std::string bytes =
        decent::testing::zip_bytes(testing::zip_parts(small_records()), is_long);
    write_archive(read(bytes), out(), {keep});
    EXPECT_EQ(get("out.pt2"), bytes);
  }
  for (const char* name : {"assorted_2_11.pt2", "package_2_15.pt2"}) {
    write_archive(read_archive(fixture(name)), out(), {keep});
    EXPECT_EQ(get("out.pt2"), read_text(fixture(name)));
  }
}

TEST_F(Writing, ViewsOfOneRecordAreWrittenToIt) {
  std::vector<std::string> asked;
  write_archive(read(small_records()), out(),
                {[&](const ExportedProgram&, const std::string& name, const Payload&,
                     std::span<std::byte> elements) {
                  asked.push_back(name);
                  if (name != "c") put_numbers(elements, name == "w" ? 1.0f : 10.0f);
                  return name != "c";
                }});
  EXPECT_THAT(asked, ElementsAre("b", "w", "c"));
  check_whole(out());
  const Archive written = read_archive(out());
  const ExportedProgram& program = written.programs[0];
  EXPECT_THAT(numbers_in(program.weights.at("w").storage), ElementsAre(1, 2, 3, 4, 5, 6, 10, 11));
  const std::string constant(4, '\2');
  EXPECT_EQ(std::memcmp(program.constants.at("c").storage.data(), constant.data(), 4), 0);
}

TEST_F(Writing, NewElementsKeepTheOrderOfTheStrides) {
  write_archive(read_archive(fixture("assorted_2_15.pt2")), out(),
                {[](const ExportedProgram&, const std::string& name, const Payload&,
                    std::span<std::byte> elements) {
                  if (name == "rows") put_numbers(elements, 100.0f);
                  return name == "rows";
                }});
  check_whole(out());
  const Archive written = read_archive(out());
  const Payload& rows = written.programs[0].weights.at("rows");  // 4 x 2, strides 1 and 4
  const std::vector<float> storage = numbers_in(rows.storage);
  EXPECT_THAT(std::vector<float>(storage.begin() + 8, storage.begin() + 16),
              ElementsAre(100, 102, 104, 106, 101, 103, 105, 107));
  const Archive original = read_archive(fixture("assorted_2_15.pt2"));
  const auto before = numbers_in(original.programs[0].weights.at("rows").storage);
  EXPECT_TRUE(std::equal(storage.begin(), storage.begin() + 8, before.begin()));
  EXPECT_TRUE(std::equal(storage.begin() + 16, storage.end(), before.begin() + 16, before.end()));
}

TEST_F(Writing, EveryProgramOfAPackageGetsItsElements) {
  write_archive(read_archive(fixture("package_2_11.pt2")), out(),
                {[](const ExportedProgram& program, const std::string& name, const Payload&,
                    std::span<std::byte> elements) {
                  if (name == "linear.bias") put_numbers(elements, program.name == "train" ? 1 : 5);
                  return name == "linear.bias";
                }});
  check_whole(out());
  const Archive written = read_archive(out());
  const auto bias = [&](const char* program) {
    return numbers_in(written.find(program)->weights.at("linear.bias").storage);
  };
  EXPECT_THAT(bias("train"), ElementsAre(1, 2));
  EXPECT_THAT(bias("eval"), ElementsAre(5, 6));
}

TEST_F(Writing, AnExtraFileComesInPlaceOfOneOfItsName) {
  for (const bool is_long : {false, true}) {
    const std::string original =
        decent::testing::zip_bytes(testing::zip_parts(small_records()), is_long);
    std::string sizes;
    for (const char* content : {"first", "longer than the first", "first"}) {
      write_archive(sizes.empty() ? read(original) : read_archive(out()), out(),
                    {keep, {{"extra/note.txt", content}}});
      const Archive written = read_archive(out());
      EXPECT_EQ(Records(written.file->bytes(), "'x'").content("extra/note.txt"), content);
      sizes += " " + std::to_string(written.file->bytes().size());
    }
    EXPECT_EQ(sizes.substr(0, sizes.find(' ', 1)), sizes.substr(sizes.rfind(' ')));
    check_whole(out());
    const std::string before = get("out.pt2");
    write_archive(read_archive(out()), out(), {keep, {{"extra/note.txt", "first"}}});
    EXPECT_EQ(get("out.pt2"), before) << "the same content is no change";
    EXPECT_TRUE(before.starts_with(original.substr(0, original.find("PK\x01\x02"))));
  }
}

TEST_F(Writing, AnExtraFileAndNewElements) {
  write_archive(read(small_records()), out(),
                {[](const ExportedProgram&, const std::string& name, const Payload&,
                    std::span<std::byte> elements) {
                   if (name == "w") put_numbers(elements, 1.0f);
                   return name == "w";
                 },
                 {{"extra/note.txt", "text"}}});
  check_whole(out());
  EXPECT_EQ(numbers_in(read_archive(out()).programs[0].weights.at("w").storage).front(), 1.0f);
}

TEST_F(Writing, OntoTheFileThatWasRead) {
  const Archive archive = read(small_records());
  write_archive(archive, folder.path() / "m.pt2",
                {[](const ExportedProgram&, const std::string& name, const Payload&,
                    std::span<std::byte> elements) {
                  if (name == "w") put_numbers(elements, 1.0f);
                  return name == "w";
                }});
  check_whole(folder.path() / "m.pt2");
  const std::string before(32, '\1');  // what was read stays as it was
  EXPECT_EQ(std::memcmp(archive.programs[0].weights.at("w").storage.data(), before.data(), 32), 0);
}

TEST_F(Writing, WhatFailsLeavesNothing) {
  const Archive archive = read(small_records());
  EXPECT_THROW(write_archive(archive, folder.path() / "none" / "out.pt2", {keep}), WriteError);
  const auto failing = [](const ExportedProgram&, const std::string&, const Payload&,
                          std::span<std::byte>) -> bool { throw UserError("no"); };
  EXPECT_THROW(write_archive(archive, out(), {failing}), UserError);
  EXPECT_FALSE(std::filesystem::exists(out()));
}

}  // namespace
}  // namespace decent::pt2
