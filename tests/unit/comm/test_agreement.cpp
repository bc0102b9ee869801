// Stages that workers go through together, over a share that needs no network.

#include "decent/comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "decent/comm/gather.h"
#include "decent/core/error.h"

namespace decent {
namespace {

// What threads of this process give each other.
class Table {
 public:
  explicit Table(std::size_t workers) : workers_(workers) {}
  std::vector<std::string> share(std::size_t rank, const std::string& name, std::string own) {
    std::unique_lock lock(mutex_);
    given_[name][rank] = std::move(own);
    changed_.notify_all();
    changed_.wait(lock, [&] { return given_[name].size() == workers_; });
    std::vector<std::string> all;
    for (const auto& [other, bytes] : given_[name]) all.push_back(bytes);
    return all;
  }

 private:
  std::size_t workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::map<std::size_t, std::string>> given_;
};

// Runs `work(rank, agreement)` for three workers at once.
template <typename Work>
void run_three(Work work, const Explain& explain = as_bug) {
  Table table(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const Agreement agreement(
          [&table, rank](const std::string& name, std::string own) {
            return table.share(static_cast<std::size_t>(rank), name, std::move(own));
          },
          explain);
      work(rank, agreement);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Part {
  std::string name;
  std::int64_t size = 0;
  bool operator==(const Part&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Part, name, size)

// The code and message of what is thrown.
template <typename Thrown, typename Work>
Outcome thrown_by(Work work) {
  try {
    work();
  } catch (const Thrown& error) {
    return {error.code(), error.what()};
  }
  return {};
}

TEST(Agreement, GivesEveryoneTheValuesOfAll) {
  run_three([](int rank, const Agreement& agreement) {
    const std::vector<Part> parts = agreement.agree(
        "parts", [&] { return Part{.name = "file\xff" + std::to_string(rank), .size = rank}; });
    EXPECT_EQ(parts, (std::vector<Part>{{"file\xff"
                                         "0",
                                         0},
                                        {"file\xff"
                                         "1",
                                         1},
                                        {"file\xff"
                                         "2",
                                         2}}));
    EXPECT_EQ(agreement.agree("flags", [&] { return rank == 1; }),
              (std::vector<bool>{false, true, false}));
    EXPECT_EQ(agreement.gather("numbers", 0.1 * rank), (std::vector<double>{0, 0.1, 0.2}));
  });
}

TEST(Agreement, RunsStagesWithoutAValue) {
  run_three([](int, const Agreement& agreement) {
    bool ran = false;
    agreement.agree("stage", [&] { ran = true; });
    EXPECT_TRUE(ran);
  });
}

// Also those that came through: they leave with the others.
TEST(Agreement, ThrowsTheSameOnAllWhereOneFailed) {
  run_three([](int rank, const Agreement& agreement) {
    const auto fail_on_1 = [&] {
      if (rank == 1) throw WriteError("disk full");
    };
    const Outcome of_all = thrown_by<SharedError>([&] { agreement.agree("a", fail_on_1); });
    EXPECT_EQ(of_all.code, ExitCode::write_failed);
    EXPECT_EQ(of_all.message, "rank 1: disk full");
    const Outcome with_value = thrown_by<SharedError>([&] {
      agreement.agree("b", [&] {
        fail_on_1();
        return rank;
      });
    });
    EXPECT_EQ(with_value.code, ExitCode::write_failed);
    EXPECT_EQ(with_value.message, "rank 1: disk full");
  });
}

TEST(Agreement, TellsHowAttemptsWentWithoutThrowing) {
  run_three([](int rank, const Agreement& agreement) {
    const auto outcomes = agreement.attempt("void", [&] {
      if (rank == 2) throw CheckpointDamaged("cut short");
    });
    ASSERT_EQ(outcomes.size(), 3U);
    EXPECT_EQ(outcomes[0].code, ExitCode::done);
    EXPECT_EQ(outcomes[2].code, ExitCode::checkpoint_damaged);
    EXPECT_EQ(outcomes[2].message, "cut short");
    EXPECT_FALSE(all_done(outcomes));
    const auto attempts = agreement.attempt("value", [&] {
      if (rank == 2) throw CheckpointDamaged("cut short");
      return Part{.name = "x", .size = rank};
    });
    ASSERT_EQ(attempts.size(), 3U);
    EXPECT_EQ(attempts[1].value, (Part{"x", 1}));
    EXPECT_FALSE(attempts[2].value);
    EXPECT_EQ(attempts[2].outcome.message, "cut short");
    EXPECT_TRUE(all_done(agreement.attempt("good", [] {})));
  });
}

TEST(Agreement, ExplainsErrorsThatCarryNoCode) {
  const auto stage = [](int rank) {
    if (rank == 0) throw std::runtime_error("out of range");
    if (rank == 1) throw UserError("no such file");
  };
  run_three([&](int rank, const Agreement& agreement) {
    const auto outcomes = agreement.attempt("stage", [&] { stage(rank); });
    EXPECT_EQ(outcomes[0].code, ExitCode::bug);
    EXPECT_EQ(outcomes[0].message, "out of range");
  });
  run_three(
      [&](int rank, const Agreement& agreement) {
        const auto outcomes = agreement.attempt("stage", [&] { stage(rank); });
        EXPECT_EQ(outcomes[0].code, ExitCode::diverged);
        EXPECT_EQ(outcomes[0].message, "sorry: out of range");
        EXPECT_EQ(outcomes[1].code, ExitCode::user_error);
        EXPECT_EQ(outcomes[1].message, "no such file");
      },
      [](const std::exception& error) {
        return Outcome{ExitCode::diverged, std::string("sorry: ") + error.what()};
      });
}

// Another worker may have ended because of the same mistake; its loss says less.
TEST(Agreement, PrefersAnOwnErrorToTheLossOfAnother) {
  const Agreement alone([](const std::string&, std::string) -> std::vector<std::string> {
    throw PeerLost("worker 1 has ended");
  });
  EXPECT_EQ(thrown_by<PeerLost>([&] { alone.agree("good", [] {}); }).message, "worker 1 has ended");
  const Outcome own =
      thrown_by<Error>([&] { alone.agree("bad", [] { throw UserError("no such flag"); }); });
  EXPECT_EQ(own.code, ExitCode::user_error);
  EXPECT_EQ(own.message, "no such flag");
  const Outcome with_value = thrown_by<Error>(
      [&] { alone.attempt("bad", []() -> int { throw WriteError("disk full"); }); });
  EXPECT_EQ(with_value.code, ExitCode::write_failed);
}

}  // namespace
}  // namespace decent
