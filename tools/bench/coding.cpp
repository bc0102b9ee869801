// The cost of mixing with codes of weights and of making the next codes: an update of parameters in
// memory, with the exchange's work on each piece of a bucket, and without it.
//
//     bench_coding THOUSANDS ROUNDS      (threads: OMP_NUM_THREADS)
//
// Prints a line per round and contender: name, milliseconds. The order turns from round to round.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "decent/codec/modulo_kernels.h"
#include "decent/optim/bucket_update.h"

namespace {

constexpr std::int64_t kBuckets = 2;  // as gpt_11m has with 25 MiB each
constexpr double kLr = 1e-3, kDecay = 0.1;

struct Bucket {
  at::Tensor x, received, grad, exp_avg, exp_avg_sq;
};

Bucket make_bucket(std::int64_t numel) {
  const at::Tensor x = at::randn({numel}).mul_(0.02);
  return {.x = x,
          .received = at::randn({numel}).mul_(kLr).add_(x),
          .grad = at::randn({numel}),
          .exp_avg = at::zeros_like(x),
          .exp_avg_sq = at::zeros_like(x)};
}

// A pair's exchange of one bucket by codes: the message that was sent, the received one, and the
// next one.
class Coding {
 public:
  Coding(const decent::ModuloFormat& format, std::int64_t slices, Bucket& bucket)
      : format_(format), bucket_(bucket) {
    const double range =
        *decent::modulo_range(1.0, slices, std::vector{decent::ModuloEdge{2, 0.5}});
    const std::vector<decent::GridFrom> grid{
        {.exponent = decent::grid_exponent(range, kLr, format.bits)}};
    layout_ = decent::modulo_layout(format, decent::slice_after_step(numel(), 1, slices),
                                    /*fine_part=*/0, grid);
    for (at::Tensor* message : {&own_, &other_, &next_})
      *message = at::empty({layout_.bytes}, at::kByte);
    encode(bucket_.x, own_, {0, numel()});
    encode(bucket_.received, other_, {0, numel()});
  }

  decent::Mixing mixing() {
    return {.in_place = [this](std::int64_t begin, std::int64_t end) { mix({begin, end}); }};
  }
  decent::PieceWork written() {
    return [this](std::int64_t begin, std::int64_t end) { encode(bucket_.x, next_, {begin, end}); };
  }

 private:
  std::int64_t numel() const { return bucket_.x.numel(); }

  void encode(const at::Tensor& x, at::Tensor& message, const decent::Range& piece) {
    decent::cpu_modulo_kernels().float32.encode(
        {.x = x.const_data_ptr<float>(),
         .segments = layout_.segments,
         .dither = static_cast<float>(decent::modulo_dither(format_, /*t=*/2)),
         .message = message.mutable_data_ptr<std::uint8_t>()},
        piece);
  }

  void mix(const decent::Range& piece) {
    const auto* const other = other_.const_data_ptr<std::uint8_t>();
    decent::cpu_modulo_kernels().float32.mix({.x = bucket_.x.mutable_data_ptr<float>(),
                                              .segments = layout_.segments,
                                              .own = own_.const_data_ptr<std::uint8_t>(),
                                              .others = {&other, 1},
                                              .weight = 0.5,
                                              .bits = format_.bits,
                                              .wrapped = &wrapped_},
                                             piece);
  }

  decent::ModuloFormat format_;
  Bucket& bucket_;
  decent::ModuloLayout layout_;
  at::Tensor own_, other_, next_;
  std::int64_t wrapped_ = 0;
};

void update(const decent::BucketUpdate& adamw, Bucket& bucket, std::int64_t step,
            decent::Mixing mixing, decent::PieceWork written) {
  const std::vector<decent::BucketSlice> whole{{.offset = 0,
                                                .numel = bucket.x.numel(),
                                                .grad = bucket.grad.const_data_ptr(),
                                                .weight_decay = kDecay,
                                                .updates = step}};
  const std::vector<void*> states{bucket.exp_avg.data_ptr(), bucket.exp_avg_sq.data_ptr()};
  adamw.apply({.x = bucket.x.data_ptr(),
               .numel = bucket.x.numel(),
               .states = states,
               .mixing = std::move(mixing),
               .slices = whole,
               .lr = kLr,
               .written = std::move(written)});
}

struct Contender {
  std::string name;
  std::function<void(std::int64_t step)> run;
};

std::vector<Contender> contenders(const decent::BucketUpdate& adamw, std::vector<Bucket>& buckets) {
  std::vector<Contender> all = {
      {"no mixing",
       [&](std::int64_t step) {
         for (Bucket& bucket : buckets) update(adamw, bucket, step, {}, nullptr);
       }},
      {"fp32", [&](std::int64_t step) {
         for (Bucket& bucket : buckets) {
           update(adamw, bucket, step,
                  {.self = 0.5, .other = 0.5, .received = bucket.received.data_ptr()}, nullptr);
         }
       }}};
  const auto add = [&](std::string name, const decent::ModuloFormat& format, std::int64_t slices) {
    auto codings = std::make_shared<std::vector<std::unique_ptr<Coding>>>();
    for (Bucket& bucket : buckets)
      codings->push_back(std::make_unique<Coding>(format, slices, bucket));
    all.push_back({std::move(name), [&, codings](std::int64_t step) {
                     for (std::size_t b = 0; b < buckets.size(); ++b) {
                       Coding& coding = *(*codings)[b];
                       update(adamw, buckets[b], step, coding.mixing(), coding.written());
                     }
                   }});
  };
  add("modulo2", decent::kModulo2, 1);
  add("modulo4", decent::kModulo4, 1);
  add("modulo2, slices 4", decent::kModulo2, 4);
  return all;
}

double milliseconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const at::NoGradGuard no_grad;
  std::vector<Bucket> buckets;
  for (std::int64_t b = 0; b < kBuckets; ++b)
    buckets.push_back(make_bucket(std::atoll(argv[1]) * 1000 / kBuckets));
  const auto adamw = decent::make_update("adamw", {});
  const std::vector<Contender> all = contenders(*adamw, buckets);
  std::int64_t step = 0;
  for (const Contender& contender : all) contender.run(++step);  // touches all memory
  for (std::int64_t round = 0; round < std::atoll(argv[2]); ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Contender& contender = all[round % 2 == 0 ? i : all.size() - 1 - i];
      std::printf("%s\t%.6f\n", contender.name.c_str(),
                  milliseconds_of([&] { contender.run(++step); }));
    }
  }
}
