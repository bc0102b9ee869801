#include "decent/data/safetensors_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "../support/safetensors_bytes.h"
#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::safetensors_bytes;
using testing::TemporaryFolder;

std::string read(const Source& source, std::string_view name,
                 const std::vector<std::int64_t>& indices) {
  const std::size_t field = source.field_index(name).value();
  std::string bytes(indices.size() * source.fields()[field].sample_bytes(), '?');
  source.read(field, indices, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

TEST(SafetensorsSource, ReadsRowsOfUnalignedTensors) {
  const TemporaryFolder folder;
  // The one byte a sample of `flag` leaves the floats at odd offsets of a header of odd length.
  const std::string header = R"({"flag":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},)"
                             R"("x":{"dtype":"F32","shape":[3,1,2],"data_offsets":[3,27]},)"
                             R"("none":{"dtype":"I64","shape":[3,0],"data_offsets":[27,27]},)"
                             R"("half":{"dtype":"BF16","shape":[3],"data_offsets":[27,33]}})";
  const std::string data =
      "abc"
      "0000000011111111"
      "22222222"
      "AABBCC";
  write_file(folder / "data.safetensors", safetensors_bytes(header, data));

  const auto source = open_safetensors_source(folder / "data.safetensors");
  EXPECT_EQ(source->size(), 3);
  ASSERT_EQ(source->fields().size(), 4U);
  const Field& x = source->fields()[source->field_index("x").value()];
  EXPECT_EQ(x.dtype, DType::float32);
  EXPECT_EQ(x.shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(x.sample_bytes(), 8U);
  EXPECT_TRUE(source->fields()[source->field_index("half").value()].shape.empty());
  EXPECT_EQ(read(*source, "flag", {2, 0}), "ca");
  EXPECT_EQ(read(*source, "x", {1, 2, 1}), "111111112222222211111111");
  EXPECT_EQ(read(*source, "half", {0, 1, 2}), "AABBCC");
  EXPECT_EQ(read(*source, "none", {0, 1, 2}), "");
}

TEST(SafetensorsSource, NamesItsFieldsInOrder) {
  const TemporaryFolder folder;
  write_file(folder / "f",
             safetensors_bytes(R"({"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                               R"("x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                               "ab"));
  const auto source = open_safetensors_source(folder / "f");
  EXPECT_EQ(source->fields()[0].name, "x");
  EXPECT_EQ(source->fields()[1].name, "y");
}

struct Refused {
  std::string content;
  std::string message;
};

TEST(SafetensorsSource, RefusesWhatIsNotATable) {
  const TemporaryFolder folder;
  const std::vector<Refused> cases = {
      {"", "not a safetensors file"},
      {safetensors_bytes("{}"), "holds no tensors"},
      {safetensors_bytes(R"({"s":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "a"),
       "'s' has shape []"},
      {safetensors_bytes(R"({"x":{"dtype":"U8","shape":[0,2],"data_offsets":[0,0]}})"),
       "holds no samples"},
      {safetensors_bytes(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("y":{"dtype":"U8","shape":[3,1],"data_offsets":[2,5]}})",
                         "abcde"),
       "'x' has shape [2], but 'y' has shape [3, 1]"},
  };
  for (const Refused& refused : cases) {
    write_file(folder / "bad.safetensors", refused.content);
    try {
      open_safetensors_source(folder / "bad.safetensors");
      ADD_FAILURE() << "was opened: " << refused.message;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(refused.message));
      EXPECT_THAT(error.what(), HasSubstr("bad.safetensors'"));
    }
  }
  EXPECT_THROW(open_safetensors_source(folder / "missing"), UserError);
}

}  // namespace
}  // namespace decent
