// External data: only from inside the model's folder, only where it is whole.

#include <sys/stat.h>

#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ExternalElements : public ModelFiles {
 public:
  // A model with one or two tensors of two float32 each, which lie as the fields say.
  static std::string model_of(std::string_view a, std::string_view b = "") {
    std::string tensors = initializer(tensor("a", 1, {2}, a));
    if (!b.empty()) tensors += initializer(tensor("b", 1, {2}, b));
    return model_bytes(relu(tensors));
  }
  std::string refusal_with(std::string_view a, std::string_view b = "") {
    return refusal_of(model_of(a, b));
  }
  std::vector<float> elements_with(std::string_view a) {
    const Model model = read(model_of(a));
    return as<float>(model.graph.initializers.at(0).elements());
  }
};

TEST_F(ExternalElements, AreThoseOfTheFile) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F, 5.F}));
  const Model model = read(model_of(external("w.bin", "4", "8"), external("w.bin", "12", "8")));
  const Tensor& a = model.graph.initializers.at(0);
  EXPECT_EQ(a.encoding, Encoding::external);
  EXPECT_EQ(a.location, "w.bin");
  EXPECT_EQ(a.offset, 4U);
  EXPECT_EQ(a.fields.size(), 3U);
  EXPECT_THAT(as<float>(a.elements()), ElementsAre(2, 3));
  EXPECT_THAT(as<float>(model.graph.initializers.at(1).elements()), ElementsAre(4, 5));
  ASSERT_EQ(model.files.size(), 2U);
  EXPECT_EQ(model.files[0]->path(), folder / "m.onnx");
  EXPECT_EQ(model.files[1]->path(), folder / "w.bin");
}

TEST_F(ExternalElements, WithoutOffsetAndLengthAreTheWholeFile) {
  put("w.bin", raw({1.F, 2.F}));
  EXPECT_THAT(elements_with(external("w.bin")), ElementsAre(1, 2));
  put("w.bin", raw({1.F, 2.F, 3.F}));
  EXPECT_THAT(refusal_with(external("w.bin")),
              HasSubstr("tensor 'a': its external data, from byte 0 of 'w.bin' (12 bytes), has 12 "
                        "bytes, its type and dims take 8"));
}

TEST_F(ExternalElements, MayLieInFoldersBelow) {
  put("data/more/w.bin", raw({1.F, 2.F}));
  EXPECT_THAT(elements_with(external("./data//more/./w.bin")), ElementsAre(1, 2));
  EXPECT_EQ(read(model_of(external("./data//more/./w.bin"))).graph.initializers[0].location,
            "data/more/w.bin");
}

TEST_F(ExternalElements, OfAttributesAreReadToo) {
  put("w.bin", raw({1.F, 2.F}));
  const Model model = read(model_bytes(
      output("y") +
      node_field(node("Constant", {}, {"y"},
                      tensor_attribute("value", tensor("", 1, {2}, external("w.bin")))))));
  const auto& value = std::get<Tensor>(model.graph.nodes[0].attributes[0].value);
  EXPECT_THAT(as<float>(value.elements()), ElementsAre(1, 2));
}

TEST_F(ExternalElements, TheModelsFolderMayBeTheCurrentOneOrALink) {
  put("real/w.bin", raw({1.F, 2.F}));
  put("real/m.onnx", model_of(external("w.bin")));
  fs::create_directory_symlink("real", folder / "link");
  EXPECT_EQ(read_model(folder / "link/m.onnx").files.size(), 2U);
  const fs::path before = fs::current_path();
  fs::current_path(folder / "real");
  const std::size_t files = read_model("m.onnx").files.size();
  fs::current_path(before);
  EXPECT_EQ(files, 2U);
}

TEST_F(ExternalElements, OutsideTheFolderAreRefused) {
  put("w.bin", raw({1.F, 2.F}));
  const std::string absolute = (folder / "w.bin").string();
  EXPECT_THAT(refusal_with(external(absolute)),
              HasSubstr("is refused: the path must be relative to the model's folder"));
  EXPECT_EQ(
      refusal_with(external("../w.bin")),
      "tensor 'a': its external data in '../w.bin' is refused: it must lie in the model's folder");
  EXPECT_THAT(refusal_with(external("data/../w.bin")),
              HasSubstr("it must lie in the model's folder"));
  for (const std::string name : {"", ".", "./", "w.bin/", "data/"}) {
    EXPECT_THAT(refusal_with(external(name)), HasSubstr("this is not a file's name")) << name;
  }
  EXPECT_THAT(refusal_with(external(std::string("w.bin\0x", 7))),
              HasSubstr("this is not a file's name"));
}

TEST_F(ExternalElements, BehindSymbolicLinksAreRefused) {
  put("real/w.bin", raw({1.F, 2.F}));
  fs::create_symlink("real/w.bin", folder / "link.bin");
  fs::create_directory_symlink("real", folder / "link");
  fs::create_symlink("none", folder / "dangling");
  const std::string why = "cannot be read: a part of its path is a symbolic link or not a folder";
  for (const std::string name : {"link.bin", "link/w.bin", "dangling", "real/w.bin/x"}) {
    EXPECT_THAT(refusal_with(external(name)), HasSubstr(why)) << name;
  }
}

TEST_F(ExternalElements, WithASecondNameAreRefused) {
  put("outside/secret", raw({1.F, 2.F}));
  fs::create_hard_link(folder / "outside/secret", folder / "w.bin");
  EXPECT_THAT(
      refusal_with(external("w.bin")),
      HasSubstr("tensor 'a': its external data in 'w.bin' is refused: the file has a second "
                "name (a hard link)"));
  fs::remove(folder / "outside/secret");
  EXPECT_THAT(elements_with(external("w.bin")), ElementsAre(1, 2));
}

TEST_F(ExternalElements, ThatAreNoFileAreRefused) {
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_with(external("folder")), HasSubstr("cannot be read: not a file"));
  EXPECT_THAT(refusal_with(external("pipe")), HasSubstr("cannot be read: not a file"));
  EXPECT_THAT(
      refusal_with(external("none.bin")),
      HasSubstr("tensor 'a': its external data in 'none.bin' cannot be read: No such file"));
  EXPECT_THAT(refusal_with(external("m.onnx")),
              HasSubstr("is refused: this is the model file itself"));
  EXPECT_THAT(refusal_with(external(std::string(5000, 'x'))),
              HasSubstr("cannot be read: File name too long"));
}

TEST_F(ExternalElements, MustLieInTheFileAsAWhole) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  EXPECT_THAT(refusal_with(external("w.bin", "17", "8")),
              HasSubstr("begins behind the file's end"));
  EXPECT_THAT(
      refusal_with(external("w.bin", "12", "8")),
      HasSubstr("from byte 12 of 'w.bin' (16 bytes), should have 8 bytes: the file is cut short"));
  EXPECT_THAT(refusal_with(external("w.bin", "0", "9223372036854775807")),
              HasSubstr("is cut short"));
  EXPECT_THAT(refusal_with(external("w.bin", "9223372036854775807", "8")),
              HasSubstr("begins behind the file's end"));
  EXPECT_THAT(refusal_with(external("w.bin", "0", "4")),
              HasSubstr("has 4 bytes, its type and dims take 8"));
}

TEST_F(ExternalElements, NumbersAreNumbersOfBytes) {
  put("w.bin", raw({1.F, 2.F}));
  for (const std::string text : {"-1", "x", "8x", " 8", "9223372036854775808", "0x8", "1e3"}) {
    EXPECT_THAT(refusal_with(external("w.bin", text, "8")),
                HasSubstr("tensor 'a': the offset of its external data is '" + text +
                          "', not a number of bytes"));
    EXPECT_THAT(refusal_with(external("w.bin", "0", text)),
                HasSubstr("the length of its external data"));
  }
}

TEST_F(ExternalElements, MayBeSharedButNotOverlap) {
  put("w.bin", raw({1.F, 2.F, 3.F, 4.F}));
  EXPECT_EQ(read(model_of(external("w.bin", "0", "8"), external("w.bin", "0", "8"))).files.size(),
            2U);
  EXPECT_EQ(read(model_of(external("w.bin", "8", "8"), external("w.bin", "0", "8"))).files.size(),
            2U);
  EXPECT_EQ(refusal_with(external("w.bin", "4", "8"), external("./w.bin", "0", "8")),
            "tensor 'a': its external data in 'w.bin', bytes 4 to 12, overlaps that of tensor 'b', "
            "bytes 0 to 8");
}

TEST_F(ExternalElements, EntriesThatMakeNoSense) {
  put("w.bin", raw({1.F, 2.F}));
  EXPECT_THAT(refusal_with(external("w.bin") + bytes(9, raw({1.F, 2.F}))),
              HasSubstr("has elements both in the model file and in another one"));
  EXPECT_THAT(refusal_with(number(14, 1)),
              HasSubstr("its elements are in another file, which is not named"));
  EXPECT_THAT(refusal_with(external("w.bin") + bytes(13, entry("location", "v.bin"))),
              HasSubstr("names two files for its external data"));
  EXPECT_THAT(refusal_of(model_bytes(relu(initializer(tensor("s", 8, {1}, external("w.bin")))))),
              HasSubstr("tensor 's': holds strings, which cannot be external data"));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
