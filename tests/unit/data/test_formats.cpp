// The formats of data by name, and one that comes from outside the library.

#include "decent/data/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using testing::refusal;
using testing::TemporaryFolder;

// A file of bytes: each is a sample.
class Bytes final : public Source {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(bytes_.size()); }
  void read(std::size_t, std::span<const std::int64_t> indices, std::byte* out) const override {
    for (const std::int64_t index : indices)
      *out++ = static_cast<std::byte>(bytes_.at(static_cast<std::size_t>(index)));
  }

 private:
  std::string bytes_;
  std::vector<Field> fields_ = {{.name = "x", .dtype = DType::uint8, .shape = {}}};
};

Options builtin(const std::string& name, const std::string& split) {
  return {{"name", name}, {"split", split}};
}

std::vector<std::string> keys_of(const std::string& format) {
  std::vector<std::string> names;
  for (const OptionKey& key : data_format(format).keys) names.push_back(key.name);
  return names;
}

TEST(DataFormats, OpenWhatTheirKeysSay) {
  EXPECT_EQ(data_format("builtin").open(builtin("digits", "train"))->size(), 1442);
  EXPECT_EQ(data_format("builtin").open(builtin("digits", "test"))->size(), 355);
}

TEST(DataFormats, SayWhichKeysTheyTake) {
  EXPECT_THAT(keys_of("builtin"), ElementsAre("name", "split"));
  for (const char* name : {"safetensors", "npz"}) EXPECT_THAT(keys_of(name), ElementsAre("path"));
}

TEST(DataFormats, NameWhatIsUnknown) {
  EXPECT_EQ(refusal([] { data_format("npy"); }).find("unknown data format 'npy'; valid: builtin, "),
            0U);
  EXPECT_EQ(refusal([] { data_format("builtin").open(builtin("mnist", "train")); }),
            "unknown builtin data set 'mnist'; valid: digits");
  EXPECT_EQ(refusal([] {
              data_format("npz").open({{"path", Paths{}}});
            }),
            "path: expected at least one file");
}

TEST(DataFormats, MayComeFromOutside) {
  register_data_format(
      {.name = "bytes", .keys = {path_key("The file.")}, .open = [](const Options& options) {
         return std::make_unique<Bytes>(read_text(options.get<Paths>("path").at(0)));
       }});
  EXPECT_EQ(data_formats().back().name, "bytes");
  const TemporaryFolder folder;
  write_file(folder / "file", "abc");
  const auto source = data_format("bytes").open({{"path", Paths{folder / "file"}}});
  std::string read(2, '?');
  source->read(0, std::vector<std::int64_t>{2, 0}, reinterpret_cast<std::byte*>(read.data()));
  EXPECT_EQ(read, "ca");
}

TEST(DataFormats, AreRegisteredOnceWithANameAndAFunction) {
  const auto open = [](const Options&) -> std::unique_ptr<Source> { return nullptr; };
  EXPECT_EQ(refusal([&] { register_data_format({.name = "npz", .keys = {}, .open = open}); }),
            "there is a data format 'npz' already: choose another name");
  EXPECT_EQ(refusal([&] { register_data_format({.name = "", .keys = {}, .open = open}); }),
            "a data format needs a name");
  EXPECT_EQ(refusal([] { register_data_format({.name = "x", .keys = {}, .open = nullptr}); }),
            "data format 'x': the function is empty");
}

}  // namespace
}  // namespace decent
