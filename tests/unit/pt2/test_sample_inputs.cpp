#include "decent/pt2/archive/sample_inputs.h"

#include <cstring>

#include "archive_files.h"

namespace decent::pt2 {
namespace {

using decent::testing::number_bytes;
using decent::testing::refusal;
using testing::ArchiveFiles;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::fixture;
using ::testing::HasSubstr;
using testing::RecordTexts;
using testing::small_records;

const std::string kEnd = "\x85}\x86.";  // .. the one item of the arguments; no keywords

class SampleInputs : public ArchiveFiles {
 public:
  // Of the program with one argument, whose example inputs this pickle is.
  std::optional<std::vector<SampleValue>> sample(const std::string& pickle) {
    RecordTexts records = small_records();
    const std::string content =
        decent::testing::zip_bytes({{.name = "a/data.pkl", .content = "\x80\x02" + pickle}});
    records.emplace_back("data/sample_inputs/model.pt", content);
    archive = read(records);
    return read_sample_inputs(*archive, archive->programs[0]);
  }
  std::string refusal_of_sample(const std::string& pickle) {
    return refusal([&] { sample(pickle); });
  }
  std::optional<Archive> archive;
};

template <typename Value>
Value only(const std::optional<std::vector<SampleValue>>& values) {
  EXPECT_TRUE(values && values->size() == 1);
  return std::get<Value>(values->at(0));
}

TEST_F(SampleInputs, NumbersAndTexts) {
  EXPECT_EQ(only<std::int64_t>(sample("K\x05" + kEnd)), 5);
  EXPECT_EQ(only<bool>(sample("\x88" + kEnd)), true);
  EXPECT_EQ(only<double>(sample("G" + std::string("\x3f\xe0\0\0\0\0\0\0", 8) + kEnd)), 0.5);
  EXPECT_EQ(only<std::string>(sample("X" + number_bytes(2, 4) + "ab" + kEnd)), "ab");
  only<None>(sample("N" + kEnd));
}

TEST_F(SampleInputs, MayBeMissing) {
  const Archive without = read(small_records());
  EXPECT_FALSE(read_sample_inputs(without, without.programs[0]));
  EXPECT_FALSE(sample("N."));
}

TEST_F(SampleInputs, NothingElseIsMade) {
  EXPECT_THAT(refusal_of_sample("cos\nsystem\n)R" + kEnd),
              HasSubstr("': record 'data/sample_inputs/model.pt': example input 0: an object of "
                        "class 'os.system', which only its code can make where a tensor, a number "
                        "or a text is expected"));
  EXPECT_THAT(refusal_of_sample("]" + kEnd), HasSubstr("example input 0: a list where a tensor"));
  EXPECT_THAT(refusal_of_sample("cos\nsystem\n)R."), EndsWith("where a tuple is expected"));
  EXPECT_THAT(refusal_of_sample("X" + number_bytes(1001, 4) + std::string(1001, 'a') + kEnd),
              EndsWith("example input 0: a text of more than 1000 bytes"));
}

TEST_F(SampleInputs, MustFitTheProgram) {
  EXPECT_THAT(refusal_of_sample(")}\x86."),
              EndsWith("example input 0: 0 values where the program takes 1"));
  EXPECT_THAT(refusal_of_sample("K\x05\x85)\x86."),
              EndsWith("a tuple where a dictionary is expected"));
  EXPECT_THAT(refusal_of_sample("K\x05\x85}X" + number_bytes(1, 4) + "aK\x01s\x86."),
              EndsWith("example input 1: 1 value where the program takes 0"));
}

TEST_F(SampleInputs, OfPyTorchItself) {
  for (const char* version : {"2_11", "2_15"}) {
    const Archive file = read_archive(fixture(std::string("assorted_") + version + ".pt2"));
    const auto values = read_sample_inputs(file, file.programs[0]);
    ASSERT_TRUE(values);
    ASSERT_EQ(values->size(), 6u);  // ids, options.bias, options.unused (two), times, mask
    const auto& ids = std::get<decent::StoredTensor>(values->at(0));
    EXPECT_EQ(ids.dtype, DType::int64);
    EXPECT_THAT(ids.shape, ElementsAre(2, 3));
    std::int64_t numbers[6] = {};
    ASSERT_EQ(ids.data.size(), sizeof numbers);
    std::memcpy(numbers, ids.data.data(), sizeof numbers);
    EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(std::get<decent::StoredTensor>(values->at(1)).shape, ElementsAre(4));
    EXPECT_TRUE(std::holds_alternative<None>(values->at(3)));
    EXPECT_EQ(std::get<std::int64_t>(values->at(4)), 3);
    EXPECT_TRUE(std::holds_alternative<None>(values->at(5)));
  }
}

}  // namespace
}  // namespace decent::pt2
