// A model, a training loop and a topology of one's own: a small network learns handwritten digits,
// on as many workers as the launcher starts, or on one without a launcher.
//
//     torchrun --no-python --nproc-per-node 2 build/own_loop [EPOCHS]

#include <decent/comm/distributed.h>
#include <decent/core/error.h>
#include <decent/data/batch.h>
#include <decent/data/digits.h>
#include <decent/data/sampler.h>
#include <decent/parallel/decentralized_data_parallel.h>
#include <torch/nn.h>

#include <cstdio>
#include <numeric>

namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(64, 64));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(64, 10));

  torch::Tensor forward(const torch::Tensor& images) {
    return out(torch::relu(hidden(images.flatten(1))));
  }
};

/// Worker 0 averages with one of the others in each step, in turn; the rest go on alone meanwhile.
std::vector<decent::Phase> star(int workers, int /*workers_per_node*/) {
  if (workers == 1) return {{{.ranks = {0}}}};
  std::vector<decent::Phase> phases;
  for (int guest = 1; guest < workers; ++guest) {
    decent::Phase& phase = phases.emplace_back();
    phase.push_back({.ranks = {0, guest}});
    for (int other = 1; other < workers; ++other) {
      if (other != guest) phase.push_back({.ranks = {other}});
    }
  }
  return phases;
}

/// Every sample of the data set, in its order.
decent::Batch read_all(const decent::Source& source) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.size()));
  std::iota(all.begin(), all.end(), 0);
  return decent::read_batch(source, all);
}

void train(decent::Distributed& workers, std::int64_t epochs) {
  const auto digits = decent::open_digits(/*train=*/true);
  const decent::Batch test = read_all(*decent::open_digits(/*train=*/false));
  const decent::Sampler sampler(
      {.samples = digits->size(), .batch_size = 32, .member = workers.member()});
  const std::int64_t steps = sampler.updates_until(epochs);

  torch::manual_seed(1);  // for the first weights; those of worker 0 are everyone's
  decent::register_topology("star", star);
  decent::DecentralizedDataParallel model(
      std::make_shared<Net>(), workers.communicator(),
      {.topology = "star",
       .training = {
           .update = decent::make_update("adamw"),
           .schedule = [=](std::int64_t step) { return 5e-3 * (1.0 - 0.9 * step / steps); },
           .weight_decay = 0.01}});

  for (std::int64_t step = 1; step <= steps; ++step) {
    const decent::Batch batch = decent::read_batch(*digits, sampler.micro_batch(step - 1, 0));
    const auto scores = model.forward(batch.fields[0]);
    torch::nn::functional::cross_entropy(scores, batch.fields[1]).backward();  // updates, too

    if (step % (5 * sampler.updates_per_epoch()) == 0 || step == steps) {
      model.global_avg();  // every worker's net is the average of all
      if (workers.main_worker()) {
        const torch::NoGradGuard no_grad;
        const auto right = model.forward(test.fields[0]).argmax(1).eq(test.fields[1]);
        std::printf("step %ld: accuracy of the average of %d: %.2f%%\n", static_cast<long>(step),
                    workers.world_size(), 100 * right.to(torch::kDouble).mean().item<double>());
        std::fflush(stdout);
      }
      model.revert_global_avg();  // its own again, bit for bit
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  auto workers = decent::initialize_distributed();
  train(workers, argc > 1 ? std::stoll(argv[1]) : 20);
  return 0;
} catch (const decent::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.code());
}
