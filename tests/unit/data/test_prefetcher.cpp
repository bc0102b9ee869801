#include "decent/data/prefetcher.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "decent/data/digits.h"
#include "decent/data/sampler.h"

namespace decent {
namespace {

Batch numbered(std::int64_t number) { return {{at::full({2}, number, at::kLong)}}; }

std::int64_t number_in(const Batch& batch) { return batch.fields.at(0)[0].item<std::int64_t>(); }

struct Ahead {
  std::size_t depth;
  std::size_t threads = 1;
};

class PrefetcherOfDepth : public ::testing::TestWithParam<Ahead> {
 protected:
  const std::size_t depth_ = GetParam().depth;
  const std::size_t threads_ = GetParam().threads;
};
INSTANTIATE_TEST_SUITE_P(Depths, PrefetcherOfDepth,
                         ::testing::Values(Ahead{0}, Ahead{1}, Ahead{2}, Ahead{7}, Ahead{1, 2},
                                           Ahead{2, 3}, Ahead{7, 4}));

TEST_P(PrefetcherOfDepth, GivesWhatDirectReadingGives) {
  const auto digits = open_digits(true);
  const Sampler sampler({digits->size(), 32, {everyone(2), 1}, 1, true, 0});
  const auto read = [&](std::int64_t number) {
    return read_batch(*digits, sampler.micro_batch(number, 0));
  };
  Prefetcher prefetcher(read, 10, 60, depth_, threads_);
  for (std::int64_t number = 10; number < 60; ++number) {
    ASSERT_FALSE(prefetcher.done());
    ASSERT_EQ(prefetcher.number(), number);
    const Batch direct = read(number);
    const Batch ahead = prefetcher.next();
    ASSERT_EQ(ahead.fields.size(), direct.fields.size());
    for (std::size_t i = 0; i < direct.fields.size(); ++i) {
      ASSERT_TRUE(at::equal(ahead.fields[i], direct.fields[i])) << "batch " << number;
    }
  }
  EXPECT_TRUE(prefetcher.done());
  EXPECT_THROW(prefetcher.next(), std::logic_error);
}

TEST_P(PrefetcherOfDepth, ReadsAnEmptySequence) {
  Prefetcher prefetcher([](std::int64_t) -> Batch { throw std::runtime_error("asked"); }, 3, 3,
                        depth_, threads_);
  EXPECT_TRUE(prefetcher.done());
  EXPECT_THROW(prefetcher.next(), std::logic_error);
}

TEST_P(PrefetcherOfDepth, ThrowsAtTheBatchThatFailedAndReadsNoFurther) {
  std::atomic<int> reads = 0;
  const auto read = [&](std::int64_t number) {
    ++reads;
    if (number == 3) throw std::runtime_error("batch " + std::to_string(number));
    return numbered(number);
  };
  Prefetcher prefetcher(read, 0, Prefetcher::kEndless, depth_, threads_);
  for (std::int64_t number = 0; number < 3; ++number) {
    EXPECT_EQ(number_in(prefetcher.next()), number);
  }
  for (int again = 0; again < 3; ++again) {
    try {
      prefetcher.next();
      ADD_FAILURE() << "did not throw";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "batch 3");
    }
    EXPECT_EQ(prefetcher.number(), 3);
  }
  EXPECT_LE(reads, 4 + static_cast<int>(std::max(depth_, threads_)));
  if (threads_ == 1) {
    EXPECT_EQ(reads, 4);
  }
}

TEST_P(PrefetcherOfDepth, NeverReadsFurtherAheadThanItsDepth) {
  std::atomic<std::int64_t> newest = -1;
  const auto read = [&](std::int64_t number) {
    std::int64_t before = newest;
    while (before < number && !newest.compare_exchange_weak(before, number)) continue;
    return numbered(number);
  };
  Prefetcher prefetcher(read, 0, Prefetcher::kEndless, depth_, threads_);
  for (std::int64_t number = 0; number < 200; ++number) {
    prefetcher.next();
    EXPECT_LE(newest.load(), number + static_cast<std::int64_t>(std::max(depth_, threads_)));
  }
}

TEST_P(PrefetcherOfDepth, StopsAtAnyMoment) {
  for (std::int64_t taken = 0; taken < 50; ++taken) {
    Prefetcher prefetcher(numbered, 0, Prefetcher::kEndless, depth_, threads_);
    for (std::int64_t i = 0; i < taken; ++i) EXPECT_EQ(number_in(prefetcher.next()), i);
  }
}

TEST_P(PrefetcherOfDepth, DropsAFailureThatNobodyAsksFor) {
  for (int round = 0; round < 20; ++round) {
    Prefetcher prefetcher([](std::int64_t) -> Batch { throw std::runtime_error("lost"); }, 0, 5,
                          depth_, threads_);
  }
}

TEST(Prefetcher, ReadsInSeveralThreadsAtOnce) {
  std::atomic<int> reading = 0;
  const auto read = [&](std::int64_t number) {
    ++reading;
    while (reading < 3) std::this_thread::yield();
    return numbered(number);
  };
  Prefetcher prefetcher(read, 0, 3, 1, 3);
  for (std::int64_t number = 0; number < 3; ++number)
    EXPECT_EQ(number_in(prefetcher.next()), number);
}

TEST(Prefetcher, StopsWithAFullQueue) {
  std::atomic<int> reads = 0;
  {
    Prefetcher prefetcher(
        [&](std::int64_t number) {
          ++reads;
          return numbered(number);
        },
        0, Prefetcher::kEndless, 3);
    while (reads < 3) std::this_thread::yield();
  }
  EXPECT_EQ(reads, 3);
}

TEST(Prefetcher, ReadsAheadInAnotherThreadAndWithoutDepthInThisOne) {
  std::thread::id reader;
  const auto read = [&](std::int64_t number) {
    reader = std::this_thread::get_id();
    return numbered(number);
  };
  Prefetcher direct(read, 0, 1, 0);
  direct.next();
  EXPECT_EQ(reader, std::this_thread::get_id());
  Prefetcher ahead(read, 0, 1, 1);
  ahead.next();
  EXPECT_NE(reader, std::this_thread::get_id());
}

// A GPU is chosen thread by thread.
TEST(Prefetcher, CallsOnStartFirstInEachThread) {
  static thread_local bool started = false;
  std::atomic<int> starts = 0;
  std::atomic<int> reads_before = 0;
  const auto read = [&](std::int64_t number) {
    if (!started) ++reads_before;
    return numbered(number);
  };
  const auto start = [&] {
    started = true;
    ++starts;
  };
  {
    Prefetcher prefetcher(read, 0, 50, 4, 3, start);
    while (!prefetcher.done()) prefetcher.next();
  }
  EXPECT_EQ(starts, 3);
  EXPECT_EQ(reads_before, 0);
}

TEST(Prefetcher, ThrowsWhatOnStartThrows) {
  Prefetcher prefetcher(numbered, 0, 5, 2, 2, [] { throw std::runtime_error("no GPU 7"); });
  for (int i = 0; i < 2; ++i) {
    try {
      prefetcher.next();
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no GPU 7");
    }
  }
}

}  // namespace
}  // namespace decent
