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
  void add(const std::string& process, int parent, const std::string& variables, int begin = 1000) {
    std::filesystem::create_directories(folder_.path() / process);
    std::ofstream(folder_.path() / process / "stat")
        << (process == "self" ? "40" : process) << " (a) name) S) S " << parent
        << " 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 " << begin << " 4096";
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

std::string name_of(int script, int begin) {
  Processes processes;
  processes.add("self", script, kStarted, 2000);
  processes.add(std::to_string(script), 20, kStarted, begin);
  processes.add("20", 1, "HOME=/");
  return started_process(kMark, processes.path());
}

TEST(StartedProcess, IsTheScriptAroundThisProcess) {
  const std::string name = name_of(30, 1000);
  EXPECT_TRUE(name.ends_with(" 30 1000")) << name;
  EXPECT_EQ(name, name_of(30, 1000));
  EXPECT_NE(name, name_of(31, 1000));
  EXPECT_NE(name, name_of(30, 1001));  // the same number later
}

TEST(StartedProcess, IsThisProcessWhereNothingIsInBetween) {
  Processes processes;
  processes.add("self", 20, kStarted, 2000);
  processes.add("20", 1, "HOME=/");
  const std::string name = started_process(kMark, processes.path());
  EXPECT_TRUE(name.ends_with(" 40 2000")) << name;
}

TEST(StartedProcess, IsUnknownWithoutTheMark) {
  Processes processes;
  processes.add("self", 20, "HOME=/");
  processes.add("20", 1, "HOME=/");
  EXPECT_EQ(started_process(kMark, processes.path()), "");
}

}  // namespace
}  // namespace decent
