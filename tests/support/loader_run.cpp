// The training data of a recipe, read as training does but without training, for tests and for
// tools/bench/loaders.py. The model's file is not read.
//
//     loader_run batches RECIPE COUNT [RANK WORKERS]
//         the first batches of a worker; each field as a line with its name, type and shape, then
//         its bytes
//     loader_run time RECIPE SECONDS
//         samples a second, by as many threads as data.threads says

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "allocator.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/data/prefetcher.h"
#include "decent/data/sampler.h"
#include "decent/task/sampling.h"
#include "decent/task/sources.h"
#include "decent/task/statistics.h"
#include "decent/train/recipe_names.h"

namespace {

using namespace decent;

BatchPlan plan_of(const Recipe& recipe, DataSet& data, int rank, int workers) {
  BatchPlan plan;
  plan.samples = data.size();
  plan.batch_size = recipe.data.batch_size.usual;
  plan.member.workers = everyone(workers);
  plan.member.rank = rank;
  plan.shuffle = recipe.data.shuffle;
  plan.seed = static_cast<std::uint64_t>(recipe.seed);
  plan.token_batches = token_batches(recipe, data);
  return plan;
}

struct Loader {
  Loader(const std::string& file, int rank, int workers)
      : recipe(with_statistics(load_recipe(file, {}, recipe_names()))),
        data(open_data_set("data.train", recipe, DataUse::training)),
        sampler(plan_of(recipe, data, rank, workers)),
        batches(
            [this](std::int64_t update) {
              return data.read(sampler.micro_batch(update, 0), sampler.position(update).epoch);
            },
            0, Prefetcher::kEndless, static_cast<std::size_t>(recipe.data.prefetch),
            static_cast<std::size_t>(recipe.data.threads)) {}

  Recipe recipe;
  DataSet data;
  Sampler sampler;
  Prefetcher batches;
};

void write(const std::string& name, const at::Tensor& tensor) {
  std::cout << name << ' ' << dtype_text(tensor.scalar_type()) << ' ' << shape_text(tensor.sizes())
            << '\n';
  std::cout.write(static_cast<const char*>(tensor.const_data_ptr()),
                  static_cast<std::streamsize>(tensor.nbytes()));
}

void batches(const std::vector<std::string>& arguments) {
  const bool one = arguments.size() < 4;
  Loader loader(arguments.at(0), one ? 0 : std::stoi(arguments[2]),
                one ? 1 : std::stoi(arguments[3]));
  for (int i = 0; i < std::stoi(arguments.at(1)); ++i) {
    const Batch batch = loader.batches.next();
    for (std::size_t field = 0; field < batch.fields.size(); ++field)
      write(loader.data.field(field).name, batch.fields[field]);
  }
}

// From the first batch on: what is measured is no start.
void time(const std::vector<std::string>& arguments) {
  Loader loader(arguments.at(0), 0, 1);
  loader.batches.next();
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double> taken{};
  std::int64_t count = 0;
  while (taken.count() < std::stod(arguments.at(1))) {
    count += loader.batches.next().samples();
    taken = std::chrono::steady_clock::now() - begin;
  }
  std::cout << static_cast<double>(count) / taken.count() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  const std::string command = argc > 1 ? argv[1] : "";
  keep_freed_memory();  // as the program does
  try {
    if (command == "batches") batches(arguments);
    if (command == "time") time(arguments);
  } catch (const UserError& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
