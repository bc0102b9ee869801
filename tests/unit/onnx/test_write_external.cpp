// External data of a model that is written.

#include "decent/onnx/write/write_external.h"

#include <algorithm>

#include "decent/onnx/write/write.h"
#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WriteExternal : public ModelFiles {
 public:
  static std::string with(std::string_view a, std::string_view b) {
    return model_bytes(
        relu(initializer(tensor("a", 1, {2}, a)) + initializer(tensor("b", 1, {2}, b))));
  }
  // The entries that are written.
  static std::string placed(const std::string& location, std::uint64_t offset) {
    return external(location, std::to_string(offset), "8");
  }
  static std::string raw_data(std::initializer_list<float> values) { return bytes(9, raw(values)); }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator(folder.path()))
      all.push_back(each.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
  static NewElements change(const Model& model, std::size_t index,
                            std::initializer_list<float> values) {
    return {&model.graph.initializers.at(index), to_bytes(raw(values))};
  }
  std::string refusal_to(const Model& model, const std::string& path) {
    return decent::testing::refusal([&] { write_model(model, {}, folder.path() / path); });
  }
  std::vector<std::vector<float>> elements_of(const std::string& path) {
    const Model model = read_model(folder.path() / path);
    std::vector<std::vector<float>> all;
    for (const Tensor& each : model.graph.initializers) all.push_back(as<float>(each.elements()));
    return all;
  }
};

TEST_F(WriteExternal, IsOneFileNamedAfterTheModel) {
  put("data/m.bin", "\1\2" + raw({1.F, 2.F}) + "rest");
  put("w.bin", raw({3.F, 4.F}) + "end");
  const Model original = read(with(external("data/m.bin", "2", "8"), external("w.bin", "0", "8")));
  write_model(original, {}, folder / "other.onnx");
  EXPECT_EQ(get("other.onnx"), with(placed("other.onnx.data", 0), placed("other.onnx.data", 64)));
  EXPECT_EQ(get("other.onnx.data"), raw({1.F, 2.F}) + std::string(56, '\0') + raw({3.F, 4.F}));
  write_model(original, {.elements = {change(original, 1, {5, 6})}, .own = {}}, folder / "o.onnx");
  EXPECT_THAT(elements_of("o.onnx"), ElementsAre(ElementsAre(1, 2), ElementsAre(5, 6)));
  EXPECT_THAT(names(), ElementsAre("data", "m.onnx", "o.onnx", "o.onnx.data", "other.onnx",
                                   "other.onnx.data", "w.bin"));
}

TEST_F(WriteExternal, LargeTensorsBeginWithAPage) {
  const std::vector<float> many(16 * 1024, 1.5F);
  std::string elements(many.size() * sizeof(float), '\0');
  std::memcpy(elements.data(), many.data(), elements.size());
  put("w.bin", raw({1.F, 2.F}) + elements);
  const Model original = read(
      model_bytes(relu(initializer(tensor("a", 1, {2}, external("w.bin", "0", "8"))) +
                       initializer(tensor("b", 1, {16 * 1024}, external("w.bin", "8", "65536"))))));
  write_model(original, {}, folder / "out.onnx");
  EXPECT_EQ(read_model(folder / "out.onnx").graph.initializers.at(1).offset, 4096U);
  EXPECT_THAT(elements_of("out.onnx"), ElementsAre(ElementsAre(1, 2), many));
}

// A name that means something to another program must not get what the file's author wrote.
TEST_F(WriteExternal, NamesOfTheOriginalAreNotTaken) {
  put("model/.bashrc", "echo hello ");
  put("model/m.onnx", with(external(".bashrc", "0", "8"), raw_data({3, 4})));
  const Model original = read_model(folder / "model/m.onnx");
  put("home/.bashrc", "mine");
  write_model(original, {}, folder / "home/out.onnx");
  EXPECT_EQ(get("home/.bashrc"), "mine");
  EXPECT_EQ(get("home/out.onnx.data"), "echo hel");
}

TEST_F(WriteExternal, AChecksumIsRemovedAndOtherEntriesAreOurs) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const std::string checksum = bytes(13, entry("checksum", "abc"));
  const Model original =
      read(with(checksum + external("w.bin", "0", "8"), external("w.bin", "8", "8") + checksum));
  write_model(original, {}, folder / "out.onnx");
  EXPECT_EQ(get("out.onnx"), with(placed("out.onnx.data", 0), placed("out.onnx.data", 64)));
}

TEST_F(WriteExternal, TensorsThatShareARangeAndNoLongerAgree) {
  put("m.data", raw({1.F, 2.F}));
  const Model original = read(with(external("m.data"), external("m.data", "0", "8")));
  const NewElements a = change(original, 0, {3, 4});
  const NewElements b = change(original, 1, {5, 6});

  write_model(original, {.elements = {a, b}, .own = {}}, folder / "both.onnx");
  EXPECT_THAT(elements_of("both.onnx"), ElementsAre(ElementsAre(3, 4), ElementsAre(5, 6)));
  EXPECT_EQ(get("both.onnx.data"), raw({3.F, 4.F}) + std::string(56, '\0') + raw({5.F, 6.F}));

  write_model(original, {.elements = {b}, .own = {}}, folder / "one.onnx");
  EXPECT_THAT(elements_of("one.onnx"), ElementsAre(ElementsAre(1, 2), ElementsAre(5, 6)));

  write_model(original, {.elements = {a, change(original, 1, {3, 4})}, .own = {}},
              folder / "same.onnx");
  EXPECT_THAT(elements_of("same.onnx"), ElementsAre(ElementsAre(3, 4), ElementsAre(3, 4)));
  EXPECT_EQ(get("same.onnx.data").size(), 8U);
  EXPECT_EQ(get("m.data"), raw({1.F, 2.F}));
}

TEST_F(WriteExternal, AnotherExportTakesTheNextNameAndRemovesTheDataItReplaces) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const Model original = read(with(external("w.bin", "0", "8"), external("w.bin", "8", "8")));
  write_model(original, {}, folder / "out.onnx");
  write_model(original, {}, folder / "other.onnx");
  const auto again = [&](float value) {
    write_model(original, {.elements = {change(original, 0, {value, 0})}, .own = {}},
                folder / "out.onnx");
    EXPECT_THAT(elements_of("out.onnx"), ElementsAre(ElementsAre(value, 0), ElementsAre(3, 4)));
    EXPECT_THAT(elements_of("other.onnx"), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
  };
  again(7);
  EXPECT_THAT(names(), ElementsAre("m.onnx", "other.onnx", "other.onnx.data", "out.onnx",
                                   "out.onnx.2.data", "w.bin"));
  again(8);
  EXPECT_THAT(names(), ElementsAre("m.onnx", "other.onnx", "other.onnx.data", "out.onnx",
                                   "out.onnx.data", "w.bin"));
  write_model(read(with(raw_data({1, 2}), raw_data({3, 4}))), {}, folder / "out.onnx");
  EXPECT_THAT(names(), ElementsAre("m.onnx", "other.onnx", "other.onnx.data", "out.onnx", "w.bin"))
      << "a model without external data leaves none behind";
}

TEST_F(WriteExternal, FilesThatAreNotItsOwnStay) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const std::string content = with(external("w.bin", "0", "8"), external("w.bin", "8", "8"));
  put("out.onnx.data", "mine");
  put("out.onnx.2.data", "mine, too");
  put("out.onnx", content);  // refers to w.bin, which is not named after it
  write_model(read(content), {}, folder / "out.onnx");
  EXPECT_EQ(get("out.onnx.data"), "mine");
  EXPECT_EQ(get("out.onnx.2.data"), "mine, too");
  EXPECT_THAT(names(), ElementsAre("m.onnx", "out.onnx", "out.onnx.2.data", "out.onnx.3.data",
                                   "out.onnx.data", "w.bin"));
  put("broken.onnx", "no model");
  put("broken.onnx.data", "mine");
  write_model(read(content), {}, folder / "broken.onnx");
  EXPECT_EQ(get("broken.onnx.data"), "mine");
}

TEST_F(WriteExternal, DataThatACopyOfTheModelRefersToStays) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const Model original = read(with(external("w.bin", "0", "8"), external("w.bin", "8", "8")));
  write_model(original, {}, folder / "out.onnx");
  std::filesystem::copy_file(folder / "out.onnx", folder / "best.onnx");
  write_model(original, {.elements = {change(original, 0, {5, 6})}, .own = {}},
              folder / "out.onnx");
  EXPECT_THAT(elements_of("out.onnx"), ElementsAre(ElementsAre(5, 6), ElementsAre(3, 4)));
  EXPECT_THAT(elements_of("best.onnx"), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
  std::filesystem::remove(folder / "best.onnx");
  write_model(original, {}, folder / "out.onnx");
  EXPECT_THAT(names(),
              ElementsAre("m.onnx", "out.onnx", "out.onnx.3.data", "out.onnx.data", "w.bin"));
}

TEST_F(WriteExternal, DataThatTheModelIsReadFromStays) {
  put("out.onnx.data", raw({1.F, 2.F, 3.F, 4.F}));
  const std::string content =
      with(external("out.onnx.data", "0", "8"), external("out.onnx.data", "8", "8"));
  put("out.onnx", content);
  write_model(read(content), {}, folder / "out.onnx");
  EXPECT_EQ(get("m.onnx"), content);
  EXPECT_EQ(get("out.onnx.data"), raw({1.F, 2.F, 3.F, 4.F}));
  EXPECT_THAT(elements_of("out.onnx"), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
  EXPECT_THAT(refusal_to(read_model(folder / "out.onnx"), "out.onnx"),
              HasSubstr("would be written over the model that it is made from"));
}

TEST_F(WriteExternal, WhatFailsLeavesTheFolderAsItWas) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const Model original = read(with(external("w.bin", "0", "8"), external("w.bin", "8", "8")));
  std::filesystem::create_directories(folder / "out.onnx/full");  // which no file can replace
  EXPECT_THROW(write_model(original, {}, folder / "out.onnx"), WriteError);
  EXPECT_THAT(names(), ElementsAre("m.onnx", "out.onnx", "w.bin"));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
