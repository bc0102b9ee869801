#include "decent/comm/control/launcher_watch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "../support/temporary_folder.h"

namespace decent {
namespace {

// A folder that looks like /proc.
class Processes {
 public:
  void add(const std::string& process, int parent, const std::string& variables) {
    std::filesystem::create_directories(folder_.path() / process);
    std::ofstream(folder_.path() / process / "stat")
        << "7 (a) name) S) S " << parent << " 7 7 0 -1 4194304";
    std::ofstream(folder_.path() / process / "environ") << variables;
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

const std::string kMark = "TORCHELASTIC_RUN_ID";
const std::string kStarted("HOME=/\0TORCHELASTIC_RUN_ID=abc\0RANK=0\0", 38);

TEST(FindLauncher, IsTheParentWhereNothingIsInBetween) {
  Processes processes;
  processes.add("self", 20, kStarted);
  processes.add("20", 1, "HOME=/");
  EXPECT_EQ(find_launcher(kMark, processes.path()), 20);
}

TEST(FindLauncher, IsFoundBehindScripts) {
  Processes processes;
  processes.add("self", 30, kStarted);
  processes.add("30", 25, kStarted);
  processes.add("25", 20, kStarted);
  processes.add("20", 1, "HOME=/");
  EXPECT_EQ(find_launcher(kMark, processes.path()), 20);
}

TEST(FindLauncher, IsNobodyWhereAnotherLauncherStartedThisProcess) {
  Processes processes;
  processes.add("self", 20, "HOME=/");
  processes.add("20", 1, "HOME=/");
  EXPECT_EQ(find_launcher(kMark, processes.path()), std::nullopt);
}

// One torchrun inside another's run.
TEST(FindLauncher, IsTheOneOfThisRun) {
  Processes processes;
  processes.add("self", 20, kStarted);
  processes.add("20", 10, std::string("TORCHELASTIC_RUN_ID=outer\0", 26));
  processes.add("10", 1, "HOME=/");
  EXPECT_EQ(find_launcher(kMark, processes.path()), 20);
}

}  // namespace
}  // namespace decent
