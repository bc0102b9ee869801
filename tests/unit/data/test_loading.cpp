// An epoch from start to end: who reads which sample, with any number of workers and threads, and
// across a resume with the same or another number of workers.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "decent/data/prefetcher.h"
#include "decent/data/sampler.h"
#include "decent/data/samples.h"
#include "numbered_source.h"

namespace decent {
namespace {

struct Loading {
  std::int64_t samples, batch_size, accumulation;
  bool shuffle;
  std::uint64_t seed;
  std::size_t depth, threads;
};

// Some updates of a run by `workers` workers, which begin at a position.
struct Stretch {
  int workers;
  std::int64_t first_update, updates;
  DataPosition from;
};

BatchPlan plan_of(const Loading& loading, const Stretch& stretch, int rank) {
  return {.samples = loading.samples,
          .batch_size = loading.batch_size,
          .member = {.workers = everyone(stretch.workers), .rank = rank},
          .accumulation = loading.accumulation,
          .shuffle = loading.shuffle,
          .seed = loading.seed,
          .first_update = stretch.first_update,
          .first_position = stretch.from};
}

// How often each sample is read in each epoch, by all workers.
using Reads = std::map<std::int64_t, std::map<std::int64_t, int>>;

void read_all(const Loading& loading, const Stretch& stretch, Reads& reads) {
  const Samples samples(std::make_unique<testing::NumberedSource>(loading.samples));
  const std::size_t field[] = {0};
  const std::int64_t accumulation = loading.accumulation;
  for (int rank = 0; rank < stretch.workers; ++rank) {
    const Sampler sampler(plan_of(loading, stretch, rank));
    const auto epoch_of = [&](std::int64_t number) {
      return sampler.position(number / accumulation).epoch;
    };
    Prefetcher batches(
        [&](std::int64_t number) {
          return samples.read(field,
                              sampler.micro_batch(number / accumulation, number % accumulation),
                              epoch_of(number), HostMemory::pageable);
        },
        stretch.first_update * accumulation,
        (stretch.first_update + stretch.updates) * accumulation, loading.depth, loading.threads);
    while (!batches.done()) {
      const std::int64_t epoch = epoch_of(batches.number());
      const Batch batch = batches.next();
      const auto* read = batch.fields[0].const_data_ptr<std::int64_t>();
      for (std::int64_t i = 0; i < batch.samples(); ++i) ++reads[epoch][read[i]];
    }
  }
}

TEST(Loading, ReadsEachSampleOnceWhateverTheWorkersThreadsAndResumes) {
  std::mt19937_64 random(24);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Loading loading{.samples = 0,
                    .batch_size = draw(1, 5),
                    .accumulation = draw(1, 3),
                    .shuffle = draw(0, 3) > 0,
                    .seed = random(),
                    .depth = static_cast<std::size_t>(draw(0, 4)),
                    .threads = static_cast<std::size_t>(draw(1, 4))};
    const int before = static_cast<int>(draw(1, 8));
    const int after = draw(0, 1) == 0 ? before : static_cast<int>(draw(1, 8));
    const auto update_of = [&](int workers) {
      return loading.batch_size * loading.accumulation * workers;
    };
    const std::int64_t most = update_of(std::max(before, after));
    loading.samples = most + draw(0, 4 * most);

    // Two epochs by the first workers alone say where they are after `stop` updates.
    const Stretch first{before, 0, draw(0, 2 * (loading.samples / update_of(before))), {}};
    const DataPosition stop = Sampler(plan_of(loading, first, 0)).position(first.updates);
    const Stretch second{after, first.updates, 2 * (loading.samples / update_of(after)), stop};
    Reads reads;
    read_all(loading, first, reads);
    read_all(loading, second, reads);

    std::int64_t read = 0;
    for (const auto& [epoch, samples] : reads) {
      for (const auto& [sample, times] : samples) {
        EXPECT_EQ(times, 1) << "sample " << sample << " of epoch " << epoch;
      }
      read += std::ssize(samples);
      const bool whole =
          epoch < stop.epoch || (epoch > stop.epoch && epoch < reads.rbegin()->first);
      const std::int64_t update = update_of(epoch < stop.epoch ? before : after);
      if (whole) {
        EXPECT_EQ(std::ssize(samples), loading.samples / update * update);
      }
    }
    EXPECT_EQ(read, first.updates * update_of(before) + second.updates * update_of(after));
  }
}

}  // namespace
}  // namespace decent
