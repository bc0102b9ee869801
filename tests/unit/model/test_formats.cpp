#include "decent/model/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/modules.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Saved;
using testing::TemporaryFolder;

TEST(ModelFormats, AreToldByTheEndOfTheName) {
  EXPECT_EQ(find_model_format("folder.onnx/model.pt")->name, "TorchScript");
  EXPECT_EQ(find_model_format("model.onnx")->name, "ONNX");
  EXPECT_EQ(find_model_format("model.pt.safetensors")->name, "safetensors");
  for (const char* other : {"model", "model.bin", ".pt", "onnx", "model.PT"})
    EXPECT_EQ(find_model_format(other), nullptr) << other;
}

TEST(ModelFormats, AreListedForUsers) {
  EXPECT_EQ(trainable_formats(), "TorchScript (.pt), ONNX (.onnx) and torch.export (.pt2)");
  EXPECT_EQ(written_extensions(), ".pt, .safetensors, .onnx or .pt2");
}

TEST(ModelFormats, OnlyAFileOfItsOwnIsWrittenBack) {
  for (const char* own : {"out.onnx", "out.pt2"}) EXPECT_TRUE(is_written_back(own)) << own;
  for (const char* other : {"out.pt", "out.safetensors", "out"})
    EXPECT_FALSE(is_written_back(other)) << other;
}

TEST(OpenModel, TakesAnyOtherNameForTorchScript) {
  const Saved saved(testing::small_module());
  for (const char* name : {"model.ts", "model", "model.pth"}) {
    const TemporaryFolder folder;
    std::filesystem::copy_file(saved.path(), folder / name);
    EXPECT_EQ(open_model(folder / name).parameters().size(), 3U) << name;
  }
}

TEST(OpenModel, RefusesWeightsOnly) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  EXPECT_THAT(testing::refusal([&] { open_model(path); }), HasSubstr("does not exist"));
  Model model = Saved(testing::small_module()).load();
  write_model(model, path);
  EXPECT_THAT(testing::refusal([&] { open_model(path); }),
              AllOf(HasSubstr("holds weights only"), HasSubstr("torch.jit.script(model)")));
}

TEST(WriteModel, WritesWhatTheNameSays) {
  Model model = Saved(testing::small_module()).load();
  const TemporaryFolder folder;
  write_model(model, folder / "out.pt");
  EXPECT_EQ(open_model(folder / "out.pt").state().size(), model.state().size());
  write_model(model, folder / "out.safetensors");
  const MappedFile file(folder / "out.safetensors");
  EXPECT_EQ(parse_safetensors(file.bytes(), "out").tensors.size(), model.state().size());
}

TEST(WriteModel, RefusesANameThatSaysNoFormat) {
  Model model = Saved(testing::small_module()).load();
  const TemporaryFolder folder;
  EXPECT_THAT(
      testing::refusal([&] { write_model(model, folder / "out.bin"); }),
      AllOf(HasSubstr("out.bin'"), HasSubstr("must end in .pt, .safetensors, .onnx or .pt2")));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.bin"));
}

TEST(WriteModel, RefusesAFormatThatTheModelDidNotComeFrom) {
  Model model = Saved(testing::small_module()).load();
  const TemporaryFolder folder;
  EXPECT_EQ(
      testing::refusal([&] { write_model(model, folder / "out.onnx"); }),
      "model '" + model.path().string() +
          "' did not come from an .onnx file, so it cannot be exported in that format. --export "
          "writes it to .pt or .safetensors");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.onnx"));
}

}  // namespace
}  // namespace decent
