// The least time that LibTorch needs to train a TorchScript model: forward, loss, backward and
// torch's fused AdamW in a loop, on one worker, with data in memory. Prints one JSON object:
// milliseconds of each step, and bytes of activations.
//
//   bench_bare MODEL.pt DATA.safetensors BATCH_SIZE STEPS

#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "decent/data/batch.h"
#include "decent/data/safetensors_source.h"

namespace {

/// Counts the bytes that tensors occupy. For one thread.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr data = inner_->allocate(bytes);
    void* pointer = data.release_context();  // the memory itself, as LibTorch requires
    sizes_[pointer] = bytes;
    held_ += static_cast<std::int64_t>(bytes);
    return {pointer, pointer, raw_deleter(), data.device()};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* pointer) {
      if (pointer == nullptr) return;
      const auto found = sizes_.find(pointer);
      held_ -= static_cast<std::int64_t>(found->second);
      sizes_.erase(found);
      inner_->raw_deleter()(pointer);
    };
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  static std::int64_t held() { return held_; }

 private:
  static inline c10::Allocator* inner_ = c10::GetCPUAllocator();
  static inline std::unordered_map<void*, std::size_t> sizes_;
  static inline std::int64_t held_ = 0;
};

struct AdamW {
  explicit AdamW(std::vector<at::Tensor> all) : parameters(std::move(all)) {
    for (const at::Tensor& parameter : parameters) {
      moments.push_back(at::zeros_like(parameter));
      squares.push_back(at::zeros_like(parameter));
      steps.push_back(at::zeros({}, at::kFloat));
    }
  }

  // As torch.optim.AdamW(fused=True), with tensors of fewer than two dimensions not decaying.
  void step() {
    const at::NoGradGuard no_grad;
    at::_foreach_add_(steps, 1);
    for (const bool decays : {true, false}) {
      std::vector<at::Tensor> x, g, m, v, s;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if ((parameters[i].dim() >= 2) != decays || !parameters[i].grad().defined()) continue;
        x.push_back(parameters[i]);
        g.push_back(parameters[i].grad());
        m.push_back(moments[i]);
        v.push_back(squares[i]);
        s.push_back(steps[i]);
      }
      if (x.empty()) continue;
      at::_fused_adamw_(x, g, m, v, /*max_exp_avg_sqs=*/{}, s, /*lr=*/1e-3, /*beta1=*/0.9,
                        /*beta2=*/0.999, /*weight_decay=*/decays ? 0.1 : 0.0, /*eps=*/1e-8,
                        /*amsgrad=*/false, /*maximize=*/false);
    }
    for (const at::Tensor& parameter : parameters) at::Tensor(parameter).mutable_grad().reset();
  }

  std::vector<at::Tensor> parameters, moments, squares, steps;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_bare MODEL.pt DATA.safetensors BATCH_SIZE STEPS\n");
    return 2;
  }
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::Module model = torch::jit::load(argv[1]);
  model.train();
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : model.parameters()) parameters.push_back(parameter);
  AdamW optimizer(std::move(parameters));

  const auto source = decent::open_safetensors_source(argv[2]);
  const std::int64_t batch_size = std::atoll(argv[3]);
  const std::int64_t batches = source->size() / batch_size;
  if (batches == 0) {
    std::fprintf(stderr, "bench_bare: fewer samples than one batch\n");
    return 2;
  }
  std::vector<double> milliseconds;
  std::int64_t activations = 0;
  double last_loss = 0;
  for (int step = 0; step < std::atoi(argv[4]); ++step) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::int64_t> rows(static_cast<std::size_t>(batch_size));
    std::iota(rows.begin(), rows.end(), step % batches * batch_size);
    const decent::Batch batch = decent::read_batch(*source, rows);  // fields x and y
    const std::int64_t held = CountingAllocator::held();
    const at::Tensor logits = model.forward({batch.fields[0]}).toTensor();
    const at::Tensor loss = at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}),
                                                   batch.fields[1].reshape({-1}).to(at::kLong), {},
                                                   at::Reduction::Mean);
    activations = CountingAllocator::held() - held;
    loss.backward();
    optimizer.step();
    last_loss = loss.item<double>();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    milliseconds.push_back(taken.count());
  }
  std::printf("%s\n", nlohmann::json{{"step_ms", milliseconds},
                                     {"activation_bytes", activations},
                                     {"last_loss", last_loss}}
                          .dump()
                          .c_str());
}
