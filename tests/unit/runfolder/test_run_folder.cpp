#include "decent/runfolder/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::filesystem::path& path) {
  try {
    RunFolder(path).check_free();
  } catch (const UserError& error) {
    return error.what();
  }
  return "free";
}

TEST(RunFolder, NamesItsFiles) {
  const RunFolder folder("runs/a");
  EXPECT_EQ(folder.recipe(), "runs/a/recipe.yaml");
  EXPECT_EQ(folder.metrics(), "runs/a/metrics.jsonl");
  EXPECT_EQ(folder.log(), "runs/a/run.log");
  EXPECT_EQ(folder.checkpoints(), "runs/a/checkpoints");
  EXPECT_EQ(folder.model(), "runs/a/model.pt");
  EXPECT_EQ(folder.model(RunModel::last, ".safetensors"), "runs/a/model.safetensors");
}

TEST(RunFolder, IsFreeWithoutARun) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(refusal(folder / "new/deep"), "free");
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));  // looking writes nothing
  EXPECT_EQ(refusal(folder.path()), "free");
  write_file(folder / "notes.txt", "mine");
  write_file(folder / "model.pt", "an export");
  EXPECT_EQ(refusal(folder.path()), "free");
}

TEST(RunFolder, IsTakenByARun) {
  for (const char* name : {"recipe.yaml", "metrics.jsonl", "checkpoints"}) {
    const testing::TemporaryFolder folder;
    std::filesystem::create_directory(folder / name);
    const std::string text = refusal(folder.path());
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_THAT(text, HasSubstr("'" + folder.path().string() + "'"));
    EXPECT_THAT(text, HasSubstr("--resume auto"));
    EXPECT_THAT(text, HasSubstr("output="));
  }
}

TEST(RunFolder, KeepsWhatARunLeavesUnderNumbers) {
  const testing::TemporaryFolder place;
  const RunFolder folder(place.path());
  EXPECT_EQ(folder.set_aside(), "");
  EXPECT_FALSE(std::filesystem::exists(place / "set-aside"));
  write_file(folder.metrics(), "one");
  write_file(folder.model(), "model one");
  EXPECT_EQ(folder.set_aside(), place / "set-aside/1");
  EXPECT_EQ(read_text(place / "set-aside/1/metrics.jsonl"), "one");
  EXPECT_EQ(read_text(place / "set-aside/1/model.pt"), "model one");
  EXPECT_EQ(read_text(folder.metrics()), "one");  // it is cut, not moved
  EXPECT_FALSE(std::filesystem::exists(folder.model()));
  write_file(folder.metrics(), "two");
  EXPECT_EQ(folder.set_aside(), place / "set-aside/2");
  EXPECT_EQ(read_text(place / "set-aside/1/metrics.jsonl"), "one");
}

TEST(RunFolder, IsNoFile) {
  const testing::TemporaryFolder folder;
  write_file(folder / "out", "");
  EXPECT_THAT(refusal(folder / "out"), HasSubstr("is a file, not a folder"));
}

}  // namespace
}  // namespace decent
