#include "decent/runfolder/output_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/host.h"

namespace decent {
namespace {

using ::testing::HasSubstr;

TEST(OutputLock, SaysWhoHoldsIt) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(find_holder(folder.path()));
  OutputLock lock(folder.path());
  lock.take("first");
  EXPECT_TRUE(lock.held());
  const auto holder = find_holder(folder.path());
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->session, "first");
  EXPECT_EQ(holder->host, host_name());
  EXPECT_EQ(holder->process, std::to_string(::getpid()));
  EXPECT_THAT(holder->since, ::testing::MatchesRegex("2.*-.*-.* .*:.*:.* UTC"));
  OutputLock other(folder.path());
  try {
    other.take("second");
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'" + folder.path().string() +
                                        "' is in use by the run of "
                                        "process " +
                                        std::to_string(::getpid())));
  }
  EXPECT_THROW(check_not_held(folder.path()), UserError);
}

TEST(OutputLock, IsSharedByTheProcessesOfOneRun) {
  const testing::TemporaryFolder folder;
  OutputLock first(folder.path());
  OutputLock second(folder.path());
  first.take("run");
  second.take("run");
  EXPECT_TRUE(first.held());
  EXPECT_FALSE(second.held());
}

TEST(OutputLock, LeavesNothing) {
  const testing::TemporaryFolder folder;
  {
    OutputLock lock(folder / "made/deep");
    lock.take("run");
    EXPECT_TRUE(std::filesystem::exists(folder / "made/deep/.lock"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "made/deep"));
  {
    OutputLock lock(folder.path());
    lock.take("run");
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path()));  // it was there before
  EXPECT_FALSE(std::filesystem::exists(folder / ".lock"));
  EXPECT_NO_THROW(check_not_held(folder.path()));
}

TEST(OutputLock, LeavesTheFolderOfARun) {
  const testing::TemporaryFolder folder;
  {
    OutputLock lock(folder / "run");
    lock.take("run");
    write_file(folder / "run/recipe.yaml", "");
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "run/recipe.yaml"));
}

TEST(OutputLock, TakesOverFromAHolderThatIsGone) {
  const testing::TemporaryFolder folder;
  write_file(folder / ".lock", "session\nhost\n1\nsome time\n");
  EXPECT_FALSE(find_holder(folder.path()));
  OutputLock lock(folder.path());
  lock.take("run");
  EXPECT_EQ(find_holder(folder.path())->session, "run");
}

TEST(OutputLock, DoesNotFollowALink) {
  const testing::TemporaryFolder folder;
  write_file(folder / "precious", "mine");
  std::filesystem::create_symlink(folder / "precious", folder / ".lock");
  OutputLock lock(folder.path());
  EXPECT_THROW(lock.take("run"), WriteError);
  EXPECT_EQ(read_text(folder / "precious"), "mine");
}

// Taken and freed by many at once, with the file coming and going.
TEST(OutputLock, IsHeldByOneAtATime) {
  const testing::TemporaryFolder folder;
  std::atomic<int> holders = 0;
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        OutputLock lock(folder / "run");
        try {
          lock.take(std::to_string(i));
        } catch (const UserError&) {
          continue;  // it came too late for a second, on a machine that is busy
        }
        ASSERT_TRUE(lock.held());
        EXPECT_EQ(++holders, 1);
        ++taken;
        std::this_thread::yield();
        --holders;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken, 4);
  EXPECT_FALSE(std::filesystem::exists(folder / "run/.lock"));
}

}  // namespace
}  // namespace decent
