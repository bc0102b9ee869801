// Mixing and updating parameters in memory: our single pass against the operations that decent-dp
// runs for the same, beside STREAM's triad.
//
//     bench_update MILLIONS ROUNDS      (threads: OMP_NUM_THREADS)
//
// Prints a line per round and contender: name, nanoseconds per parameter (triad: per element of
// float64), bytes per parameter that must be moved at least. The order turns from round to round.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros_like.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "decent/optim/bucket_update.h"

namespace {

constexpr std::int64_t kParameter = 640'000;  // elements of a parameter: a layer of a small GPT
constexpr std::int64_t kPerBucket = 10;       // 25 MB
constexpr double kLr = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kDecay = 0.1;
constexpr std::int64_t kAccumIter = 4;

struct Bucket {
  at::Tensor x, received, sent;
  std::vector<at::Tensor> states = {};
  std::vector<at::Tensor> parameters = {}, grads = {}, exp_avgs = {},
                          exp_avg_sqs = {};  // each one's
  std::vector<at::Tensor> steps = {};
};

Bucket make_bucket() {
  const std::int64_t numel = kParameter * kPerBucket;
  Bucket bucket{.x = at::rand({numel}), .received = at::rand({numel}), .sent = at::rand({numel})};
  for (int i = 0; i < 3; ++i) bucket.states.push_back(at::zeros_like(bucket.x));
  for (std::int64_t p = 0; p < kPerBucket; ++p) {
    const auto part = [p](const at::Tensor& flat) {
      return flat.narrow(0, p * kParameter, kParameter);
    };
    bucket.parameters.push_back(part(bucket.x));
    bucket.exp_avgs.push_back(part(bucket.states[0]));
    bucket.exp_avg_sqs.push_back(part(bucket.states[1]));
    bucket.grads.push_back(at::rand({kParameter}));
    bucket.steps.push_back(at::full({}, 10.0));
  }
  return bucket;
}

void ours(const decent::BucketUpdate& update, double decay, Bucket& bucket, std::int64_t step) {
  std::vector<decent::BucketSlice> slices;
  for (std::int64_t p = 0; p < kPerBucket; ++p) {
    slices.push_back({.offset = p * kParameter,
                      .numel = kParameter,
                      .grad = bucket.grads[static_cast<std::size_t>(p)].const_data_ptr(),
                      .weight_decay = decay,
                      .updates = step});
  }
  // Optimizers share the bucket. Squares, of which adagrad has only the sum, are in the second
  // array.
  const std::size_t first = update.state_names().front() == "sum" ? 1 : 0;
  std::vector<void*> states;
  for (std::size_t i = 0; i < update.state_names().size(); ++i)
    states.push_back(bucket.states[first + i].data_ptr());
  update.apply({.x = bucket.x.data_ptr(),
                .numel = bucket.x.numel(),
                .states = states,
                .mixing = {.self = 0.5, .other = 0.5, .received = bucket.received.data_ptr()},
                .slices = slices,
                .lr = kLr,
                // Without adafactor's norms: the direction is that of the last round.
                .factored_work = [](const decent::BucketStep&, const decent::BucketSlice&,
                                    const decent::FactoredStep&) {}});
}

// decent-dp's _ddp_fn: its mixing before the optimizer's step, its copy for the next exchange
// after.
void as_decent_dp(Bucket& bucket, const std::function<void(Bucket&)>& optimizer_step) {
  bucket.x.mul_(0.0);  // w - (1 - w) / (n - 1) for a pair
  bucket.x.add_(bucket.received, 1.0);
  optimizer_step(bucket);
  bucket.sent.copy_(bucket.x);
  bucket.sent.mul_(0.5);
}

// torch.optim.AdamW on the CPU as it is without options: operation by operation.
void adamw_steps(Bucket& bucket) {
  constexpr double kStep = 10;
  const double size = kLr / (1 - std::pow(kBeta1, kStep));
  const double root = std::sqrt(1 - std::pow(kBeta2, kStep));
  for (std::size_t p = 0; p < bucket.parameters.size(); ++p) {
    bucket.parameters[p].mul_(1 - kLr * kDecay);
    bucket.exp_avgs[p].lerp_(bucket.grads[p], 1 - kBeta1);
    bucket.exp_avg_sqs[p].mul_(kBeta2).addcmul_(bucket.grads[p], bucket.grads[p], 1 - kBeta2);
    const at::Tensor denominator = bucket.exp_avg_sqs[p].sqrt().div_(root).add_(kEps);
    bucket.parameters[p].addcdiv_(bucket.exp_avgs[p], denominator, -size);
  }
}

void fused_adamw(Bucket& bucket) {
  at::_fused_adamw_(bucket.parameters, bucket.grads, bucket.exp_avgs, bucket.exp_avg_sqs, {},
                    bucket.steps, kLr, kBeta1, kBeta2, kDecay, kEps, /*amsgrad=*/false,
                    /*maximize=*/false);
}

// As plain as in STREAM.
void triad(std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& c) {
  const auto n = static_cast<std::int64_t>(a.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    a[at] = b[at] + 3.0 * c[at];
  }
}

struct Contender {
  std::string name;
  double bytes;  // an element
  double elements;
  std::function<void()> run;
};

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const at::NoGradGuard no_grad;
  const std::int64_t count = std::atoll(argv[1]) * 1'000'000 / (kParameter * kPerBucket);
  std::vector<Bucket> buckets;
  for (std::int64_t i = 0; i < count; ++i) buckets.push_back(make_bucket());
  const double elements = static_cast<double>(count * kPerBucket * kParameter);
  const auto each = [&](const std::function<void(Bucket&)>& run) {
    return [&buckets, run] {
      for (Bucket& bucket : buckets) run(bucket);
    };
  };

  const auto stream = static_cast<std::size_t>(elements);
  std::vector<double> a(stream, 1.0), b(stream, 2.0), c(stream, 3.0);
  std::vector<Contender> contenders = {
      {"triad", 24, elements, [&] { triad(a, b, c); }},
      {"decent-dp adamw", 32, elements, each([](Bucket& x) { as_decent_dp(x, adamw_steps); })},
      {"decent-dp fused adamw", 32, elements,
       each([](Bucket& x) { as_decent_dp(x, fused_adamw); })}};
  const decent::Options options{{"momentum", 0.9}, {"accum_iter", kAccumIter}};
  std::vector<std::unique_ptr<decent::BucketUpdate>> updates;
  std::int64_t step = 0;
  for (const std::string& name : decent::update_names()) {
    updates.push_back(decent::make_update(name, options));
    const bool accumulates = name.starts_with("accum");
    const double decay = decent::default_weight_decay(name);
    // float32 read: weight, received, gradient and the states; written: weight and states, of which
    // the two moments only once in accum_iter updates.
    const auto states = static_cast<double>(updates.back()->state_names().size());
    const double bytes = accumulates ? 32 + 8.0 / kAccumIter : 16 + 8 * states;
    contenders.push_back({name, bytes, elements * (accumulates ? kAccumIter : 1),
                          [&, &update = *updates.back(), accumulates, decay] {
                            for (std::int64_t i = 0; i < (accumulates ? kAccumIter : 1); ++i) {
                              ++step;
                              for (Bucket& bucket : buckets) ours(update, decay, bucket, step);
                            }
                          }});
  }
  for (Contender& contender : contenders) contender.run();  // touches all memory
  for (std::int64_t round = 0; round < std::atoll(argv[2]); ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const std::size_t at = round % 2 == 0 ? i : contenders.size() - 1 - i;
      const Contender& contender = contenders[at];
      std::printf("%s\t%.6f\t%.2f\n", contender.name.c_str(),
                  1e9 * seconds_of(contender.run) / contender.elements, contender.bytes);
      std::fflush(stdout);
    }
  }
}
