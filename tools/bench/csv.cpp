// Reads a file of numbers, as the format csv does, and prints how much a thread reads in a second:
// in the pass that opens it, and when all rows are read in order and at random. MB are those of the
// file, seconds the thread's own.

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numeric>
#include <vector>

#include "decent/data/csv/csv_source.h"
#include "decent/data/permutation.h"

namespace {

double own_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Act>
void measure(const char* name, double megabytes, const Act& act) {
  const double begin = own_seconds();
  act();
  std::printf("%-24s %7.0f MB/s\n", name, megabytes / (own_seconds() - begin));
}

void read_all(const decent::Source& source, const std::vector<std::int64_t>& order) {
  constexpr std::size_t kBatch = 256;
  std::vector<std::vector<std::byte>> batch;
  std::vector<std::byte*> outs;
  for (const decent::Field& field : source.fields()) {
    batch.emplace_back(kBatch * field.sample_bytes());
    outs.push_back(batch.back().data());
  }
  for (std::size_t i = 0; i < order.size(); i += kBatch) {
    const std::size_t count = std::min(kBatch, order.size() - i);
    source.read_fields(std::span(order).subspan(i, count), outs);
  }
}

void run(const char* path) {
  const double megabytes = 1e-6 * static_cast<double>(std::filesystem::file_size(path));
  const decent::csv::TextFiles files = {std::make_shared<const decent::csv::TextFile>(path)};
  std::unique_ptr<decent::Source> source;
  measure("open", megabytes, [&] { source = decent::csv::open_csv(files, {}, {}); });
  std::vector<std::int64_t> order(static_cast<std::size_t>(source->size()));
  std::iota(order.begin(), order.end(), 0);
  measure("x and y in order", megabytes, [&] { read_all(*source, order); });
  const decent::KeyedPermutation permutation(order.size(), 1, 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int64_t>(permutation(i));
  measure("x and y at random", megabytes, [&] { read_all(*source, order); });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: bench_csv FILE.csv\n");
    return 2;
  }
  try {
    run(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
