#include "decent/optim/gradient_norm.h"

#include <algorithm>
#include <vector>

#include "decent/optim/chunks.h"
#include "decent/optim/kernels.h"

namespace decent {
namespace {

template <typename T>
double sum_as(std::span<const BucketSlice> slices) {
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

}  // namespace

double sum_of_squares(std::span<const BucketSlice> slices, Scalar scalar) {
  return scalar == Scalar::float32 ? sum_as<float>(slices) : sum_as<double>(slices);
}

double clip_coefficient(double norm, double most) { return std::min(1.0, most / (norm + 1e-6)); }

}  // namespace decent
