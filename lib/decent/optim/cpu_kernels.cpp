// The kernels of the CPU: pieces of parameters, spread over threads. What a piece gives does not
// depend on who takes it, so neither does the result.

#include <algorithm>
#include <vector>

#include "decent/optim/bucket_kernels.h"
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

template <typename T>
void update_piece(const Arrays<T>& a, const kernels::Sgd<T>& c, std::int64_t count) {
  kernels::sgd(a.x, a.received, a.grad, a.state(0), c, count);
}

template <typename T>
void update_piece(const Arrays<T>& a, const kernels::Adam<T>& c, std::int64_t count) {
  kernels::adam(a.x, a.received, a.grad, a.state(0), a.state(1), c, count);
}

template <typename T>
void update_piece(const Arrays<T>& a, const kernels::AccumAdam<T>& c, std::int64_t count) {
  kernels::accum_adam(a.x, a.received, a.grad, a.state(0), a.state(1), a.state(2), c, count);
}

class CpuKernels : public TypedKernels<CpuKernels> {
 public:
  // Updates every slice that has a gradient; the others are mixed only.
  template <template <typename> class Coefficients, typename T>
  void update(const BucketStep& step, std::span<const Coefficients<T>> coefficients) const {
    const std::vector<Chunk> chunks = split_into_chunks(step.slices);
#pragma omp parallel for schedule(static) if (chunks.size() > 1)
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Chunk& chunk = chunks[i];
      const Arrays<T> arrays(step, step.slices[chunk.slice], chunk.begin);
      if (arrays.grad != nullptr) {
        update_piece(arrays, coefficients[chunk.slice], chunk.count);
      } else if (arrays.received != nullptr) {
        kernels::mix(arrays.x, arrays.received, static_cast<T>(step.mixing.self),
                     static_cast<T>(step.mixing.other), chunk.count);
      }
    }
  }

  template <typename T>
  void mix_as(T* x, const T* received, std::int64_t numel, const Mixing& mixing) const {
    const auto self = static_cast<T>(mixing.self);
    const auto other = static_cast<T>(mixing.other);
#pragma omp parallel for schedule(static) if (numel > kChunk)
    for (std::int64_t begin = 0; begin < numel; begin += kChunk) {
      kernels::mix(x + begin, received + begin, self, other, std::min(kChunk, numel - begin));
    }
  }

  template <typename T>
  double sum_as(std::span<const BucketSlice> slices) const {
    const std::vector<Chunk> chunks = split_into_chunks(slices);
    std::vector<double> sums(chunks.size());
#pragma omp parallel for schedule(static) if (chunks.size() > 1)
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const void* grad = slices[chunks[i].slice].grad;
      if (grad == nullptr) continue;
      sums[i] =
          kernels::sum_of_squares(static_cast<const T*>(grad) + chunks[i].begin, chunks[i].count);
    }
    // In one order, whoever has added up the pieces.
    double sum = 0;
    for (const double part : sums) sum += part;
    return sum;
  }
};

}  // namespace

const BucketKernels& cpu_kernels() {
  static const CpuKernels kernels;
  return kernels;
}

}  // namespace decent
