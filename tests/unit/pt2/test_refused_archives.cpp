// Zip archives that are broken, made to do harm, or hold something else: one message each, without
// memory being asked for what they only claim to hold.

#include "archive_files.h"

namespace decent::pt2 {
namespace {

using decent::testing::number_bytes;
using decent::testing::zip_bytes;
using decent::testing::ZipPart;
using testing::archive_bytes;
using testing::ArchiveFiles;
using testing::changed;
using testing::fixture;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordTexts;
using testing::small_records;
using ::testing::StartsWith;
using testing::zip_parts;

class RefusedArchives : public ArchiveFiles {
 public:
  // Of an archive with one more record.
  std::string refusal_with(const std::string& name, const std::string& content = "") {
    RecordTexts records = small_records();
    records.emplace_back(name, content);
    return refusal_of(records);
  }
  // Of an archive without one of its records.
  std::string refusal_without(const std::string& name) {
    RecordTexts records = small_records();
    std::erase_if(records, [&](const auto& record) { return record.first == name; });
    EXPECT_EQ(records.size() + 1, small_records().size());
    return refusal_of(records);
  }
};

TEST_F(RefusedArchives, CutShort) {
  const std::string whole = read_text(fixture("package_2_11.pt2"));
  for (std::size_t i = 0; i < 64; ++i) {
    const std::string message = refusal_of(whole.substr(0, i * whole.size() / 64));
    EXPECT_EQ(message, ": no zip archive, or cut short: its directory is not there") << i;
  }
  EXPECT_EQ(refusal_of(whole.substr(0, whole.size() - 1)),
            ": no zip archive, or cut short: its directory is not there");
}

TEST_F(RefusedArchives, EveryRecordIsNeeded) {
  for (const auto& [name, content] : small_records()) {
    if (name == "byteorder" || name == "archive_version") continue;  // as torch.export.load has it
    EXPECT_THAT(refusal_without(name), Not("accepted")) << name;
  }
  EXPECT_EQ(refusal_without("data/weights/weight_0"),
            ": damaged: it has no record 'data/weights/weight_0'");
}

TEST_F(RefusedArchives, RecordsThatLieOverOneAnother) {
  // The directory says that the second record is where the first one is.
  std::string bytes = archive_bytes(small_records());
  const std::size_t first = bytes.find("PK\x01\x02");
  const std::size_t second = bytes.find("PK\x01\x02", first + 1);
  constexpr std::size_t kHeader = 42;  // the field that says where a record begins
  bytes.replace(second + kHeader, 4, bytes.substr(first + kHeader, 4));
  EXPECT_THAT(refusal_of(bytes), ::testing::EndsWith("lie over one another"));
}

TEST_F(RefusedArchives, RecordsOfOneName) {
  RecordTexts records = small_records();
  records.push_back(records.front());
  EXPECT_EQ(
      refusal_of(records),
      ": damaged: entries 'm/data/weights/weight_0' and 'm/data/weights/weight_0' have one name");
}

TEST_F(RefusedArchives, CompressedRecords) {
  for (const std::uint64_t size : {std::uint64_t{4}, std::uint64_t{1} << 60}) {  // a zip bomb
    auto parts = zip_parts(small_records());
    for (ZipPart& part : parts) {
      if (part.name != "m/models/model.json") continue;
      part.method = 8;
      part.size = size;
    }
    EXPECT_THAT(refusal_of(zip_bytes(parts, true)),
                StartsWith(": record 'models/model.json' is compressed, as torch.export.save never "
                           "writes it.\nFrom Python, write the file anew: "));
  }
}

TEST_F(RefusedArchives, ContentsThatChanged) {
  std::string bytes = archive_bytes(small_records());
  bytes.replace(bytes.find("TRAINING"), 8, "training");
  EXPECT_EQ(refusal_of(bytes), ": record 'models/model.json': damaged: its checksum is another");
}

TEST_F(RefusedArchives, OtherFiles) {
  EXPECT_EQ(refusal_of("no zip"), ": no zip archive, or cut short: its directory is not there");
  EXPECT_THAT(refusal_of(RecordTexts{}),
              StartsWith(" is a zip archive, but not one of torch.export"));
  EXPECT_THAT(refusal_of(RecordTexts{{"data.pkl", ""}}),
              StartsWith(" is a file of torch.save or torch.jit.save, not of torch.export.save"));
  EXPECT_THAT(refusal_of(RecordTexts{{"archive_format", "pt3"}}),
              StartsWith(" is a zip archive, but"));
  EXPECT_THAT(refusal_of(RecordTexts{{"archive_format", "pt2"}}),
              StartsWith(" holds no exported program"));
}

TEST_F(RefusedArchives, OtherLayoutsOfArchives) {
  const std::string way_out =
      ".\nFrom Python, export the model with PyTorch 2.11 or later:\n"
      "    torch.export.save(torch.export.export(model.train(), example_inputs), 'model.pt2')";
  // Written without a folder.
  EXPECT_EQ(refusal_of(zip_bytes({{.name = "serialized_exported_program.json", .content = "{}"}})),
            " is in a layout of torch.export.save that is too old" + way_out);
  for (const char* record : {"data/weights/model.pt", "data/constants/model.pt"}) {
    EXPECT_EQ(refusal_with(record),
              " is in a layout of torch.export.save that is too old" + way_out);
  }
  EXPECT_THAT(refusal_with("data/aotinductor/model/a.so"),
              StartsWith(" holds what AOTInductor compiled"));
  EXPECT_THAT(refusal_with("data/executorch/model.pte"),
              StartsWith(" holds a program for ExecuTorch"));
  EXPECT_THAT(refusal_of(changed("archive_version", "0", "1")),
              StartsWith(" is an archive of version '1'; version 0 can be read"));
  EXPECT_THAT(refusal_of(changed("byteorder", "little", "big")),
              StartsWith(" was written on a big-endian machine"));
}

}  // namespace
}  // namespace decent::pt2
