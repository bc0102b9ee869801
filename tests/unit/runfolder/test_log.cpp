#include "decent/runfolder/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Screen {
  std::string out, err;
};

template <typename Act>
Screen shown(int rank, Verbosity verbosity, const Act& act) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  {
    Log log(rank, verbosity);
    act(log);
  }
  Screen screen;
  screen.out = ::testing::internal::GetCapturedStdout();
  screen.err = ::testing::internal::GetCapturedStderr();
  return screen;
}

void say_all(Log& log) {
  log.detail("a {detail}");
  log.info("some info");
  log.warn("a danger");
  log.file_only("for the file");
}

TEST(Log, SpeaksAsLoudlyAsAsked) {
  const Screen normal = shown(0, Verbosity::normal, say_all);
  EXPECT_EQ(normal.out, "some info\n");
  EXPECT_EQ(normal.err, "warning: a danger\n");
  EXPECT_EQ(shown(0, Verbosity::verbose, say_all).out, "a {detail}\nsome info\n");
  const Screen quiet = shown(0, Verbosity::quiet, say_all);
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(quiet.err, "warning: a danger\n");
}

TEST(Log, OnlySpeaksOnRankZero) {
  const Screen other = shown(1, Verbosity::verbose, say_all);
  EXPECT_EQ(other.out + other.err, "");
}

TEST(Log, WritesEverythingToItsFile) {
  const testing::TemporaryFolder folder;
  const Screen screen = shown(0, Verbosity::quiet, [&](Log& log) {
    log.open_file(folder / "run.log");
    say_all(log);
  });
  EXPECT_EQ(screen.out, "");
  EXPECT_THAT(read_text(folder / "run.log"),
              AllOf(HasSubstr("a {detail}\n"), HasSubstr("some info\n"), HasSubstr("a danger\n"),
                    HasSubstr("for the file\n")));
}

TEST(Log, KeepsWhatWasSaidBeforeItHadAFile) {
  const testing::TemporaryFolder folder;
  shown(0, Verbosity::quiet, [&](Log& log) {
    log.info("before the file");
    log.open_file(folder / "run.log");
    log.info("in the file");
  });
  EXPECT_THAT(read_text(folder / "run.log"),
              ::testing::ContainsRegex("before the file\n.*in the file\n"));
}

TEST(Log, FailsWithWriteError) {
  Log log(0, Verbosity::quiet);
  EXPECT_THROW(log.open_file("/proc/no/such/run.log"), WriteError);
  log.open_file("/dev/full");
  try {
    log.info("lost");
    ADD_FAILURE() << "no error";
  } catch (const WriteError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/dev/full"));
  }
}

}  // namespace
}  // namespace decent
