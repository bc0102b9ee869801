#include "decent/optim/mix.h"

#include <algorithm>

#include "decent/optim/chunks.h"
#include "decent/optim/kernels.h"

namespace decent {
namespace {

template <typename T>
void mix_as(T* x, const T* received, std::int64_t numel, const Mixing& mixing) {
  const auto self = static_cast<T>(mixing.self);
  const auto other = static_cast<T>(mixing.other);
#pragma omp parallel for schedule(static) if (numel > kChunk)
  for (std::int64_t begin = 0; begin < numel; begin += kChunk) {
    kernels::mix(x + begin, received + begin, self, other, std::min(kChunk, numel - begin));
  }
}

}  // namespace

void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing) {
  if (mixing.received == nullptr) return;
  if (scalar == Scalar::float32) {
    mix_as(static_cast<float*>(x), static_cast<const float*>(mixing.received), numel, mixing);
  } else {
    mix_as(static_cast<double*>(x), static_cast<const double*>(mixing.received), numel, mixing);
  }
}

}  // namespace decent
