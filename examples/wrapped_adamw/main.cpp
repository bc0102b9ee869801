// An ordinary LibTorch training loop with torch::optim::AdamW, made decentralized: the lines that
// say (1) and (2) are what it takes. Those that say "was" are what stood there before.
//
//     torchrun --no-python --nproc-per-node 2 build/wrapped_adamw

#include <decent/comm/distributed.h>
#include <decent/core/error.h>
#include <decent/data/batch.h>
#include <decent/data/digits.h>
#include <decent/parallel/decent_optim_wrapper.h>
#include <torch/nn.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>

#include <cstdio>
#include <numeric>

namespace {

constexpr std::int64_t kEpochs = 15;
constexpr std::int64_t kBatch = 32;

/// Images [N, 1, 8, 8] and their digits [N].
std::pair<torch::Tensor, torch::Tensor> load_digits(bool train) {
  const auto source = decent::open_digits(train);
  std::vector<std::int64_t> all(static_cast<std::size_t>(source->size()));
  std::iota(all.begin(), all.end(), 0);
  const decent::Batch batch = decent::read_batch(*source, all);
  return {batch.fields[0], batch.fields[1]};
}

void train() {
  auto workers = decent::initialize_distributed();  // (1)
  torch::manual_seed(1 + workers.rank());           // was: torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Flatten(), torch::nn::Linear(64, 64), torch::nn::ReLU(),
                            torch::nn::Linear(64, 10));
  auto adamw = std::make_shared<torch::optim::AdamW>(net->parameters(), 3e-3);
  decent::DecentOptimWrapper optimizer(adamw, "ring", workers.communicator());  // (2)
  torch::optim::StepLR schedule(*adamw, /*step_size=*/5, /*gamma=*/0.5);

  const auto [images, digits] = load_digits(/*train=*/true);
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = torch::randperm(images.size(0));  // another one on each worker
    for (const auto& batch : order.split(kBatch)) {
      optimizer.zero_grad();  // was: adamw->zero_grad();
      const auto scores = net->forward(images.index_select(0, batch));
      torch::nn::functional::cross_entropy(scores, digits.index_select(0, batch)).backward();
      optimizer.step();  // was: adamw->step();
    }
    schedule.step();
  }

  optimizer.global_avg(/*may_revert=*/false);  // new: every worker's net is the average of all
  if (!workers.main_worker()) return;          // new: one of them says so
  const torch::NoGradGuard no_grad;
  const auto [test_images, test_digits] = load_digits(/*train=*/false);
  const auto right = net->forward(test_images).argmax(1).eq(test_digits);
  std::printf("accuracy of the average of %d: %.2f%%\n", workers.world_size(),
              100 * right.to(torch::kDouble).mean().item<double>());
}

}  // namespace

int main() try {
  train();
  return 0;
} catch (const decent::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.code());
}
