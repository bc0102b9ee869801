// External data of a model that is written.

#include "decent/model/onnx/write_external.h"

#include "decent/model/onnx/write.h"
#include "model_files.h"

namespace decent::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WriteExternal : public ModelFiles {
 public:
  static std::string with(std::string_view a, std::string_view b) {
    return model_bytes(
        relu(initializer(tensor("a", 1, {2}, a)) + initializer(tensor("b", 1, {2}, b))));
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

TEST(NewLocation, IsNamedAfterTheModel) {
  const auto named = [](const char* location) {
    return new_location(location, "d/m.onnx", "e/out.x.onnx");
  };
  EXPECT_EQ(named("m.onnx.data"), "out.x.onnx.data");
  EXPECT_EQ(named("data/m.onnx_data"), "data/out.x.onnx_data");
  EXPECT_EQ(named("m.data"), "out.x.data");
  EXPECT_EQ(named("m_weights.bin"), "out.x_weights.bin");
  EXPECT_EQ(named("m"), "out.x");
  EXPECT_EQ(named("m2.bin"), "m2.bin");
  EXPECT_EQ(named("more.bin"), "more.bin");
  EXPECT_EQ(named("m/w.bin"), "m/w.bin");
}

TEST_F(WriteExternal, IsCopiedBesideTheModel) {
  put("data/m.bin", "\1\2" + raw({1.F, 2.F}) + "rest" + raw({3.F, 4.F}) + "end");
  const auto model = [](const char* name) {
    return with(external(name, "2", "8"), external(name, "14", "8"));
  };
  const Model original = read(model("data/m.bin"));
  write_model(original, {}, folder / "longer_name.onnx");
  EXPECT_EQ(get("longer_name.onnx"), model("data/longer_name.bin"));
  EXPECT_EQ(get("data/longer_name.bin"), get("data/m.bin"));
  write_model(original, {.elements = {change(original, 1, {5, 6})}, .own = {}}, folder / "o.onnx");
  EXPECT_EQ(get("data/o.bin"), "\1\2" + raw({1.F, 2.F}) + "rest" + raw({5.F, 6.F}) + "end");
}

TEST_F(WriteExternal, InAnotherFolderIsTheSameModel) {
  put("weights.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const std::string model =
      with(external("weights.bin", "0", "8"), external("weights.bin", "8", "8"));
  const Model original = read(model);
  std::filesystem::create_directory(folder / "out");
  write_model(original, {}, folder / "out/m.onnx");
  EXPECT_EQ(get("out/m.onnx"), model);
  EXPECT_EQ(get("out/weights.bin"), get("weights.bin"));
}

TEST_F(WriteExternal, ANewNameIsTheOnlyChangeOfEntries) {
  put("m.onnx.data", raw({1.F, 2.F, 3.F, 4.F}));
  const auto model = [](const char* name) {
    return with(
        bytes(13, entry("offset", "8")) + bytes(13, entry("checksum", "abc")) + external(name),
        external(name, "0", "8"));
  };
  write_model(read(model("m.onnx.data")), {}, folder / "out.onnx");
  EXPECT_EQ(get("out.onnx"), model("out.onnx.data"));
}

TEST_F(WriteExternal, AChecksumOfOldElementsIsRemoved) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const std::string checksum = bytes(13, entry("checksum", "abc"));
  const auto model = [&](const std::string& b) {
    return with(external("w.bin", "0", "8") + checksum, external("w.bin", "8", "8") + b);
  };
  const Model original = read(model(checksum));
  std::filesystem::create_directory(folder / "out");
  write_model(original, {.elements = {change(original, 1, {5, 6})}, .own = {}},
              folder / "out/m.onnx");
  EXPECT_EQ(get("out/m.onnx"), model(""));
}

TEST_F(WriteExternal, TensorsThatShareARangeAndNoLongerAgree) {
  put("m.data", raw({1.F, 2.F}));
  const Model original = read(with(external("m.data"), external("m.data", "0", "8")));
  const NewElements a = change(original, 0, {3, 4});
  const NewElements b = change(original, 1, {5, 6});

  write_model(original, {.elements = {a, b}, .own = {}}, folder / "both.onnx");
  EXPECT_THAT(elements_of("both.onnx"), ElementsAre(ElementsAre(3, 4), ElementsAre(5, 6)));
  EXPECT_EQ(get("both.data"), raw({3.F, 4.F}) + std::string(56, '\0') + raw({5.F, 6.F}));

  write_model(original, {.elements = {b}, .own = {}}, folder / "one.onnx");
  EXPECT_THAT(elements_of("one.onnx"), ElementsAre(ElementsAre(1, 2), ElementsAre(5, 6)));

  write_model(original, {.elements = {a, change(original, 1, {3, 4})}, .own = {}},
              folder / "same.onnx");
  EXPECT_THAT(elements_of("same.onnx"), ElementsAre(ElementsAre(3, 4), ElementsAre(3, 4)));
  EXPECT_EQ(get("same.data").size(), 8U);
  EXPECT_EQ(get("m.data"), raw({1.F, 2.F}));
}

TEST_F(WriteExternal, FilesThatTheModelIsReadFromAreNotOverwritten) {
  put("weights.bin", raw({1.F, 2.F, 3.F, 4.F}));
  const std::string content =
      with(external("weights.bin", "0", "8"), external("weights.bin", "8", "8"));
  const Model original = read(content);
  EXPECT_THAT(
      refusal_to(original, "out.onnx"),
      HasSubstr("its external data 'weights.bin' would be written over that of the model that "
                "it is made from; choose another folder"));
  EXPECT_THAT(refusal_to(original, "weights.bin"),
              HasSubstr("would be written over the model that it is made from"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.onnx"));
  EXPECT_EQ(get("weights.bin"), raw({1.F, 2.F, 3.F, 4.F}));
}

TEST_F(WriteExternal, FilesThatAreWrittenAreDifferent) {
  put("m.onnx.data", raw({1.F, 2.F}));
  put("out.onnx.data", raw({1.F, 2.F}));
  const std::string why = "would be written over another of its files; choose another name";
  EXPECT_THAT(
      refusal_to(read(with(external("m.onnx.data"), external("out.onnx.data"))), "d/out.onnx"),
      HasSubstr(why));
  put("model", raw({1.F, 2.F}));
  put("model.tmp", raw({1.F, 2.F}));
  std::filesystem::create_directory(folder / "d");
  EXPECT_THAT(refusal_to(read(with(external("m.onnx.data"), external("model"))), "d/model"),
              HasSubstr(why));
  EXPECT_THAT(refusal_to(read(with(external("m.onnx.data"), external("model.tmp"))), "d/model"),
              HasSubstr(why))
      << "the name that the model has until it is whole";
}

}  // namespace
}  // namespace decent::onnx
