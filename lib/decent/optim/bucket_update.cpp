#include "decent/optim/bucket_update.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "decent/optim/kernels.h"

namespace decent {
namespace {

// Elements a thread takes at a time: long enough to amortise the call, short enough to balance.
constexpr std::int64_t kChunk = 1 << 15;

struct Chunk {
  std::size_t slice;
  std::int64_t begin;
  std::int64_t count;
};

std::vector<Chunk> split_into_chunks(std::span<const BucketSlice> slices) {
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    for (std::int64_t begin = 0; begin < slices[s].numel; begin += kChunk) {
      chunks.push_back({s, begin, std::min(kChunk, slices[s].numel - begin)});
    }
  }
  return chunks;
}

// The arrays of one slice from one element on, typed.
template <typename T>
struct Arrays {
  Arrays(const BucketStep& step, const BucketSlice& slice, std::int64_t begin)
      : step_(step),
        at_(slice.offset + begin),
        x(static_cast<T*>(step.x) + at_),
        received(step.mixing.received ? static_cast<const T*>(step.mixing.received) + at_
                                      : nullptr),
        grad(slice.grad ? static_cast<const T*>(slice.grad) + begin : nullptr) {}

  T* state(std::size_t number) const { return static_cast<T*>(step_.states[number]) + at_; }

 private:
  const BucketStep& step_;
  std::int64_t at_;

 public:
  T* x;
  const T* received;
  const T* grad;
};

// Runs `update(arrays, slice, count)` over every slice that has a gradient; the others are mixed
// only.
template <typename T, typename Update>
void for_each_chunk(const BucketStep& step, const Update& update) {
  const std::vector<Chunk> chunks = split_into_chunks(step.slices);
#pragma omp parallel for schedule(static) if (chunks.size() > 1)
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const BucketSlice& slice = step.slices[chunks[i].slice];
    const Arrays<T> arrays(step, slice, chunks[i].begin);
    if (arrays.grad != nullptr) {
      update(arrays, slice, chunks[i].count);
    } else if (arrays.received != nullptr) {
      kernels::mix(arrays.x, arrays.received, static_cast<T>(step.mixing.self),
                   static_cast<T>(step.mixing.other), chunks[i].count);
    }
  }
}

template <typename Derived>
class TypedUpdate : public BucketUpdate {
 public:
  void apply(const BucketStep& step) const override {
    const auto& self = static_cast<const Derived&>(*this);
    if (step.scalar == Scalar::float32) {
      self.template apply_as<float>(step);
    } else {
      self.template apply_as<double>(step);
    }
  }
};

class SgdUpdate : public TypedUpdate<SgdUpdate> {
 public:
  explicit SgdUpdate(const SgdOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"momentum_buffer"};
    return names;
  }

  template <typename T>
  void apply_as(const BucketStep& step) const {
    for_each_chunk<T>(step, [&](const Arrays<T>& a, const BucketSlice& slice, std::int64_t count) {
      const kernels::Sgd<T> c{.self = static_cast<T>(step.mixing.self),
                              .other = static_cast<T>(step.mixing.other),
                              .weight_decay = static_cast<T>(slice.weight_decay),
                              .momentum = static_cast<T>(options_.momentum),
                              .lr = static_cast<T>(step.lr * slice.lr_scale),
                              .nesterov = options_.nesterov};
      kernels::sgd(a.x, a.received, a.grad, a.state(0), c, count);
    });
  }

 private:
  SgdOptions options_;
};

class AdamUpdate : public TypedUpdate<AdamUpdate> {
 public:
  explicit AdamUpdate(const AdamOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
    return names;
  }

  template <typename T>
  void apply_as(const BucketStep& step) const {
    for_each_chunk<T>(step, [&](const Arrays<T>& a, const BucketSlice& slice, std::int64_t count) {
      kernels::adam(a.x, a.received, a.grad, a.state(0), a.state(1), coefficients<T>(step, slice),
                    count);
    });
  }

 private:
  template <typename T>
  kernels::Adam<T> coefficients(const BucketStep& step, const BucketSlice& slice) const {
    const double lr = step.lr * slice.lr_scale;
    const auto s = static_cast<double>(slice.updates);
    const bool decoupled = options_.decoupled_weight_decay;
    return {.self = static_cast<T>(step.mixing.self),
            .other = static_cast<T>(step.mixing.other),
            .shrink = static_cast<T>(decoupled ? 1 - lr * slice.weight_decay : 1.0),
            .weight_decay = static_cast<T>(decoupled ? 0.0 : slice.weight_decay),
            .one_minus_beta1 = static_cast<T>(1 - options_.beta1),
            .beta2 = static_cast<T>(options_.beta2),
            .one_minus_beta2 = static_cast<T>(1 - options_.beta2),
            .step_size = static_cast<T>(lr / (1 - std::pow(options_.beta1, s))),
            .bias_correction2_sqrt = static_cast<T>(std::sqrt(1 - std::pow(options_.beta2, s))),
            .eps = static_cast<T>(options_.eps)};
  }

  AdamOptions options_;
};

}  // namespace

std::unique_ptr<BucketUpdate> make_sgd(const SgdOptions& options) {
  return std::make_unique<SgdUpdate>(options);
}

std::unique_ptr<BucketUpdate> make_adam(const AdamOptions& options) {
  return std::make_unique<AdamUpdate>(options);
}

}  // namespace decent
