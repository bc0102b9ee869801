#include "decent/train/output_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// The message of writing `output` beside `input`; "free" where nothing would be replaced.
std::string refusal(const InputFile& input, const OutputFile& output) {
  try {
    refuse_to_replace({&input, 1}, {&output, 1});
  } catch (const UserError& error) {
    return error.what();
  }
  return "free";
}

class OutputFiles : public ::testing::Test {
 protected:
  OutputFiles() {
    fs::create_directories(folder_ / "data/deep");
    write_file(folder_ / "data/in.pt", "input");
  }
  std::string writing(const fs::path& path) const {
    return refusal({"the model", folder_ / "data/in.pt"}, {"--export", path, "choose another"});
  }

  testing::TemporaryFolder folder_;
};

TEST_F(OutputFiles, MayStandBesideInputs) {
  EXPECT_EQ(writing(folder_ / "data/out.pt"), "free");
  EXPECT_EQ(writing(folder_ / "new/in.pt"), "free");
  write_file(folder_ / "same.pt", "input");  // a copy is another file
  EXPECT_EQ(writing(folder_ / "same.pt"), "free");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(OutputFiles, AreNoInputHoweverThePathIsSpelled) {
  for (const char* path : {"data/in.pt", "data/./in.pt", "data/deep/../in.pt", "data//in.pt",
                           "data/new/../in.pt", "new/../data/in.pt"}) {
    EXPECT_THAT(writing(folder_ / path), HasSubstr("is the same file as the model")) << path;
  }
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(OutputFiles, AreNoInputUnderAnotherName) {
  fs::create_symlink(folder_ / "data/in.pt", folder_ / "link.pt");
  fs::create_hard_link(folder_ / "data/in.pt", folder_ / "other.pt");
  fs::create_directory_symlink(folder_ / "data", folder_ / "linked");
  for (const char* path : {"link.pt", "other.pt", "linked/in.pt", "linked/new/../in.pt"}) {
    EXPECT_THAT(writing(folder_ / path), HasSubstr("is the same file as the model")) << path;
  }
  EXPECT_EQ(writing(folder_ / "linked/out.pt"), "free");
}

TEST_F(OutputFiles, AreNoFilesOfAFolderThatIsRead) {
  const InputFile checkpoint{"the checkpoint", folder_ / "data", true};
  const auto writing_to = [&](const fs::path& path) {
    return refusal(checkpoint, {"--export", path, "choose another"});
  };
  fs::create_directory_symlink(folder_ / "data", folder_ / "linked");
  fs::create_hard_link(folder_ / "data/in.pt", folder_ / "other.pt");
  for (const char* path : {"data/in.pt", "data/out.pt", "linked/deep/out.pt", "other.pt"}) {
    EXPECT_THAT(writing_to(folder_ / path), HasSubstr("is a file of the checkpoint")) << path;
  }
  EXPECT_EQ(writing_to(folder_ / "data2/out.pt"), "free");
  EXPECT_EQ(writing_to(folder_ / "out.pt"), "free");
}

TEST_F(OutputFiles, AreNoFolderAroundAnInput) {
  const OutputFile checkpoints{"output 'a'", folder_ / "data", "choose another", true};
  EXPECT_THAT(refusal({"the weights", folder_ / "data/deep/../in.pt"}, checkpoints),
              HasSubstr("is the folder in which the weights"));
  EXPECT_EQ(refusal({"the weights", folder_ / "in.pt"}, checkpoints), "free");
  // A run goes on from a checkpoint of its own folder.
  EXPECT_EQ(refusal({"the checkpoint", folder_ / "data/deep", true}, checkpoints), "free");
}

TEST_F(OutputFiles, AreNamedWithTheWayOut) {
  const std::string text = writing(folder_ / "data/in.pt");
  EXPECT_THAT(text, HasSubstr("--export: '" + (folder_ / "data/in.pt").string() + "'"));
  EXPECT_THAT(text, HasSubstr("never written over: choose another"));
}

}  // namespace
}  // namespace decent
