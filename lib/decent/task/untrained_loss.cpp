#include "decent/task/untrained_loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>

#include "decent/data/batch.h"

namespace decent {
namespace {

// With fewer samples, the loss may have any value.
constexpr std::int64_t kFewSamples = 8;

// Targets of samples spread over the data: as many as 1 MiB holds, at most 256.
at::Tensor some_targets(const DataSet& data) {
  constexpr std::int64_t kMaxSamples = 256;
  constexpr std::int64_t kMaxBatchBytes = 1 << 20;
  const std::array<std::size_t, 1> field = {data.fields.back()};
  const Field& target = data.samples->fields()[field[0]];
  const auto bytes = target.fixed() ? static_cast<std::int64_t>(target.sample_bytes()) : 1;
  const std::int64_t fitting = kMaxBatchBytes / std::max<std::int64_t>(bytes, 1);
  const std::int64_t most = std::clamp<std::int64_t>(fitting, 1, kMaxSamples);
  return data.samples
      ->read(field, spread_samples(data.samples->source(), most), 0, HostMemory::pageable)
      .fields.front();
}

// Zeros make all classes equally probable, so any target gives the same loss.
double loss_of_zeros(const LossFunction& loss, const ModelRecipe& recipe, std::int64_t classes) {
  const ReducedLoss reduced = loss.make(recipe.loss_options);
  return reduced(at::zeros({1, classes}, at::kDouble), at::zeros({1}, at::kLong),
                 at::Reduction::Mean, {.ignore_index = -1})
      .item<double>();
}

}  // namespace

UntrainedLoss untrained_loss(const ModelRecipe& recipe, const DataSet& train, const Batch& batch,
                             const Prediction& prediction, double loss) {
  const at::NoGradGuard no_grad;
  const Criterion criterion(recipe);
  if (!criterion.loss().zeros_know_nothing) {
    return {.model = batch.samples() < kFewSamples ? 0 : loss};
  }
  if (criterion.has_classes()) {
    const std::int64_t classes = prediction.output.size(recipe.class_dim);
    return {.model = loss, .zeros = loss_of_zeros(criterion.loss(), recipe, classes)};
  }
  const at::Tensor targets = some_targets(train);
  const at::Tensor zeros = at::zeros_like(targets, targets.options().dtype(at::kDouble));
  return {.model = loss, .zeros = criterion.mean_loss(zeros, targets).value};
}

}  // namespace decent
