#include "decent/supervisor/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "../support/temporary_folder.h"
#include "decent/comm/launch.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Shells are the workers, and say what workers of the trainer do.
std::string says(char what) { return std::string("printf '") + what + "' >&$DECENT_SUPERVISOR; "; }
const std::string kSaves = says(kSavesOnSignals);
const std::string kSteps = kSaves + says(kFirstStepDone);
// The sleep ends with the shell that waits for it, also where that is killed; and nobody waits for
// what it might still say.
const std::string kSleep = "setpriv --pdeathsig KILL sleep 60 > /dev/null 2>&1 & wait; ";

class Supervising : public ::testing::Test {
 protected:
  int run(const std::string& script, int workers = 2, int max_restarts = 0, int min_workers = 0) {
    const auto begin = std::chrono::steady_clock::now();
    const int code = supervise({.workers = workers,
                                .max_restarts = max_restarts,
                                .min_workers = min_workers,
                                .patience = 1s,
                                .command =
                                    [&](int restarts) {
                                      const std::string variable =
                                          "RESTARTS=" + std::to_string(restarts) + "; ";
                                      return WorkerCommand{"/bin/bash", {"-c", variable + script}};
                                    },
                                .say = [&](const std::string& line) { said_.push_back(line); }});
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return code;
  }
  // A script that touches a file for each worker when it has come so far.
  std::string arrive() const { return "touch " + folder_.path().string() + "/$RANK; "; }
  bool has_arrived(int rank) const {
    return std::filesystem::exists(folder_.path() / std::to_string(rank));
  }
  // Sends a signal when all have arrived, and again after a pause.
  std::thread signal_when_arrived(int signal, int workers, int times = 1) {
    return std::thread([this, signal, workers, times, process = ::getpid()] {
      for (int rank = 0; rank < workers; ++rank) {
        while (!has_arrived(rank)) std::this_thread::sleep_for(5ms);
      }
      for (int i = 0; i < times; ++i) {
        ::kill(process, signal);
        std::this_thread::sleep_for(400ms);
      }
    });
  }

  testing::TemporaryFolder folder_;
  std::vector<std::string> said_;
  double seconds_ = 0;
};

// The thread that sends must not take the signal itself.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t set;
    ::sigfillset(&set);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

TEST_F(Supervising, EndsWellWhenAllDo) {
  EXPECT_EQ(run(arrive(), 3), 0);
  EXPECT_TRUE(has_arrived(0) && has_arrived(1) && has_arrived(2));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Supervising, HasTheCodeOfTheFirstFailure) {
  EXPECT_EQ(run("if [ $RANK = 1 ]; then exit 6; fi; sleep 0.5; exit 3"), 6);
  EXPECT_THAT(said_, IsEmpty());  // the workers have said why
}

TEST_F(Supervising, TakesASignalledWorkerForLost) {
  EXPECT_EQ(run("if [ $RANK = 1 ]; then kill -KILL $$; fi; sleep 0.5; exit 3"), 3);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("was ended by SIGKILL, as the system does")));
}

TEST_F(Supervising, StartsAllAgainAfterALoss) {
  EXPECT_EQ(run("if [ $RESTARTS = 0 ]; then exit 3; fi", 2, 1), 0);
  EXPECT_THAT(said_, ElementsAre("starting all workers again, 1 of 1 times"));
}

TEST_F(Supervising, GivesUpAfterTheLastRestart) {
  EXPECT_EQ(run("exit 1", 2, 2), 1);
  EXPECT_EQ(said_.size(), 2U);
}

TEST_F(Supervising, DoesNotRepeatWhatTheUserMustFix) {
  EXPECT_EQ(run("exit 2", 2, 5), 2);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Supervising, PassesTheFirstSignalOn) {
  const BlockedSignals blocked;
  auto sender = signal_when_arrived(SIGUSR1, 2);
  EXPECT_EQ(run("trap 'exit 75' USR1; " + kSaves + arrive() + kSleep, 2, 5), 75);
  sender.join();
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Supervising, KillsAtTheSecondSignal) {
  const BlockedSignals blocked;
  auto sender = signal_when_arrived(SIGTERM, 2, 2);
  EXPECT_EQ(run("trap '' TERM; " + kSaves + arrive() + "exec sleep 60", 2, 5), 128 + SIGTERM);
  sender.join();
  EXPECT_THAT(said_, ElementsAre("ended at once by a second signal (SIGTERM)"));
  EXPECT_LT(seconds_, 30);  // that they would sleep
}

TEST_F(Supervising, KillsAtTheFirstWhereNothingCanBeSaved) {
  const BlockedSignals blocked;
  auto sender = signal_when_arrived(SIGINT, 2);
  EXPECT_EQ(run("if [ $RANK = 0 ]; then " + kSaves + "fi; " + arrive() + "exec sleep 60", 2, 5),
            128 + SIGINT);
  sender.join();
  EXPECT_THAT(said_, ElementsAre("ended before there was anything to save (SIGINT)"));
}

TEST_F(Supervising, LeavesOneOutWhereAWorkerDiesTwiceBeforeItsFirstStep) {
  EXPECT_EQ(run("[ $WORLD_SIZE = 2 ] || { " + kSaves + "kill -KILL $$; }", 4, 9, 2), 0);
  EXPECT_THAT(said_, Contains("starting all workers again, 1 of 9 times"));
  EXPECT_THAT(said_, Contains("starting 3 of 4 workers again, 2 of 9 times"));
  EXPECT_THAT(said_, Contains("starting 3 of 4 workers again, 3 of 9 times"));
  EXPECT_THAT(said_, Contains("starting 2 of 4 workers again, 4 of 9 times"));
}

TEST_F(Supervising, LeavesOneOutWhereOnlyOneDiesBeforeItsFirstStep) {
  const std::string dies = "if [ $RANK = 1 ]; then exit 3; fi; ";
  EXPECT_EQ(run("if [ $WORLD_SIZE = 3 ]; then " + dies + kSteps + "exit 3; fi", 3, 9, 1), 0);
  EXPECT_THAT(said_, ElementsAre("starting all workers again, 1 of 9 times",
                                 "starting 2 of 3 workers again, 2 of 9 times"));
}

TEST_F(Supervising, KeepsAllWhereTheyHaveStepped) {
  EXPECT_EQ(run(kSteps + "exit 3", 2, 3, 1), 3);
  EXPECT_THAT(said_, Each(HasSubstr("starting all workers again")));
}

TEST_F(Supervising, KeepsAllWhereOneStepIsBetweenTwoDeaths) {
  EXPECT_EQ(run("if [ $RESTARTS = 1 ]; then " + kSteps + "fi; exit 3", 2, 2, 1), 3);
  EXPECT_THAT(said_, Each(HasSubstr("starting all workers again")));
}

TEST_F(Supervising, KeepsTheLeastNumberOfWorkers) {
  EXPECT_EQ(run("exit 3", 2, 5, 2), 3);
  EXPECT_THAT(said_, Each(HasSubstr("starting all workers again")));
  said_.clear();
  EXPECT_EQ(run("exit 3", 2, 5), 3);
  EXPECT_THAT(said_, Each(HasSubstr("starting all workers again")));
}

// Whoever waits for a worker that never came.
TEST_F(Supervising, DoesNotWaitForEverAfterAFailure) {
  EXPECT_EQ(run("if [ $RANK = 1 ]; then exit 2; fi; exec sleep 60"), 2);
  EXPECT_LT(seconds_, 30);
}

TEST_F(Supervising, LeavesTheStoreListeningForWorkerZero) {
  EXPECT_EQ(run("[ $RANK != 0 ] || [ -S /proc/self/fd/$DECENT_STORE_LISTENER ]"), 0);
  EXPECT_EQ(run("[ -S /proc/self/fd/$DECENT_SUPERVISOR ]"), 0);
}

}  // namespace
}  // namespace decent
