#include "decent/task/trial.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/batch.h"
#include "decent/data/device_batch.h"
#include "decent/data/sampler.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"
#include "decent/task/layout_advice.h"
#include "decent/task/non_finite.h"
#include "decent/task/passes.h"
#include "decent/task/predicted.h"
#include "decent/task/probabilities.h"
#include "decent/task/random.h"
#include "decent/task/state_before.h"
#include "decent/task/target_check.h"

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

// `prediction` is the model's for `batch` of `train` before any training, and `loss` its mean
// loss. Reads further targets of `train` if the loss of zeros depends on them.
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

// A batch and its results.
struct TriedBatch {
  Batch batch;
  Prediction prediction;
  MeanLoss loss;
};

// In a run, the next batch already lies on the GPU beside the batch that the model runs on.
std::unique_ptr<DeviceBatch> next_batch(const Task& task, const Batch& like) {
  if (task.recipe.data.prefetch == 0) return nullptr;
  return std::make_unique<DeviceBatch>(like, task.model->device());
}

Prediction run_batch(Task& task, const DataSet& data, std::span<const std::int64_t> samples,
                     const Batch& batch, Trial& found) {
  Prediction prediction;
  try {
    prediction = predict(*task.model, task.inputs, task.criterion, data, batch);
  } catch (const UserError& error) {
    throw_for_batch(task, data, samples, batch, error);
  }
  if (found.gives_probabilities != false) {
    const auto gives = looks_like_probabilities(prediction.output, task.recipe);
    if (gives) found.gives_probabilities = gives;
  }
  return prediction;
}

// `batch` are the samples `samples` of `data`.
TriedBatch try_batch(Task& task, const DataSet& data, std::span<const std::int64_t> samples,
                     const Batch& batch, Trial& found) {
  const Prediction prediction = run_batch(task, data, samples, batch, found);
  try {
    const MeanLoss loss = task.criterion.mean_loss(prediction.output, prediction.target);
    if (const auto classes = task.criterion.class_count(prediction.output, prediction.target))
      found.target_classes = classes;
    const std::string doubt = task.criterion.doubt(prediction.output, prediction.target);
    if (!doubt.empty()) throw UserError(doubt);
    return {batch, prediction, loss};
  } catch (const WrongClass& error) {
    throw_for_batch(task, data, samples, batch, error);
  } catch (const UserError& error) {
    std::vector<std::string> lines = layout_advice(task);
    lines.insert(lines.begin(), data.key + ": " + error.what());
    throw UserError(join(lines, "\n"));
  }
}

// Marks a parameter as written once its gradient is there, which is what an update in backward
// does.
class MarkWritten : public torch::autograd::PostAccumulateGradHook {
 public:
  void operator()(const at::Tensor& parameter) override {
    parameter.unsafeGetTensorImpl()->bump_version();
  }
};

/// The first step of training on `samples`, up to the update.
class TrainingTrial {
 public:
  TrainingTrial(Task& task, std::span<const std::int64_t> samples, Trial& found)
      : task_(task), samples_(samples), found_(found) {}

  void run() {
    task_.model->train();
    // A weight read through .data escapes autograd's bookkeeping, so a trial would not show it.
    bool later = task_.model->reads_data_of_tensors();
    const bool after = task_.recipe.parallel.update == UpdateMode::after_backward;
    try {
      try_backward(!later && !after);
    } catch (const WeightNeededLater&) {
      later = true;
      try_backward(false);
    }
    drop_gradients();
    if (later) refuse_in_backward();
    found_.weights_needed_later = later;
  }

 private:
  void try_backward(bool updates_in_backward) {
    const Batch batch = task_.train->read(samples_);
    if (batch.empty()) {
      throw UserError(task_.train->key +
                      ": no sample of a whole batch can be read (data.on_error: skip)");
    }
    const auto next = next_batch(task_, batch);
    TriedBatch tried = try_batch(task_, *task_.train, samples_, batch, found_);
    note_loss(tried);
    tried.prediction = {};  // a step of training does not keep this memory either
    const at::Tensor& loss = tried.loss.tensor;
    if (!loss.requires_grad()) {
      throw UserError("the loss of model '" + task_.model->path().string() +
                      "' does not depend on any of its trainable parameters");
    }
    for (const auto& [name, parameter] : trained_part(task_.model->parameters())) {
      torch::autograd::impl::set_post_acc_grad_hooks(
          parameter, updates_in_backward ? std::make_unique<MarkWritten>() : nullptr);
    }
    run_backward(loss);
    task_.model->settle_buffers();
  }

  // Notes what a run would find in its first step, or warn of at its end.
  void note_loss(const TriedBatch& tried) {
    const double loss = tried.loss.value;
    found_.untrained_loss =
        untrained_loss(task_.recipe.model, *task_.train, tried.batch, tried.prediction, loss);
    const bool may_be_overflow = task_.recipe.amp.dtype == AmpDType::fp16;
    if (std::isfinite(loss) || may_be_overflow) return;
    found_.divergence = divergence_text(task_, {.samples = samples_,
                                                .read = tried.batch,
                                                .output = tried.prediction.output,
                                                .loss = loss});
  }

  void drop_gradients() {
    for (const auto& [name, parameter] : trained_part(task_.model->parameters())) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
      const at::Tensor grad = std::exchange(at::Tensor(parameter).mutable_grad(), {});
      if (grad.defined()) {
        check_dense(name, grad);
      } else {
        found_.without_gradient.push_back(name);
      }
    }
  }

  void refuse_in_backward() const {
    if (task_.recipe.parallel.update != UpdateMode::in_backward) return;
    throw UserError("the model '" + task_.model->path().string() +
                    "' uses a weight after its gradient is complete (through detach() or .data), "
                    "so that it cannot be updated while backward runs.\nSet parallel.update: "
                    "after_backward, or auto");
  }

  Task& task_;
  std::span<const std::int64_t> samples_;
  Trial& found_;
};

// The two batch sizes that this worker will evaluate: a full one, and the last.
void try_evaluation(Task& task, const Member& member, Trial& found) {
  const at::NoGradGuard no_grad;
  task.model->eval();
  const std::int64_t samples = task.eval->size();
  const std::int64_t own = evaluation_size(samples, member);
  const std::int64_t full = std::min(own, task.recipe.data.eval_batch_size);
  if (own == 0) return;
  for (std::int64_t first : std::set<std::int64_t>{0, (own - 1) / full * full}) {
    const auto indices = evaluation_indices(samples, member, first, full);
    const Batch batch = task.eval->read(indices);
    if (batch.empty()) continue;
    const auto next = next_batch(task, batch);
    try_batch(task, *task.eval, indices, batch, found);
    task.model->settle_buffers();
  }
}

// The samples from `first` on, at most `most` of them.
std::vector<std::int64_t> samples_from(std::int64_t first, const DataSet& data, std::int64_t most) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(std::min(most, data.size() - first)));
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

// False where all samples of the batch are left out.
bool try_to_predict(Task& task, std::int64_t first, Trial& found) {
  const std::vector<std::int64_t> samples =
      samples_from(first, *task.predict, task.recipe.data.eval_batch_size);
  const Batch batch = task.predict->read(samples);
  if (batch.empty()) return false;
  const Prediction prediction = run_batch(task, *task.predict, samples, batch, found);
  try {
    const OutputReader reader(task, /*are_probabilities=*/false);
    reader.read(prediction.output, batch.samples());
    found.classes = reader.classes_of(prediction.output);
  } catch (const UserError& error) {
    throw UserError(task.predict->key + ": " + error.what());
  }
  task.model->settle_buffers();
  return true;
}

// The first batch and the last one, which may be smaller. All workers look at the same ones.
void try_prediction(Task& task, Trial& found) {
  const at::NoGradGuard no_grad;
  task.model->eval();
  const std::int64_t samples = task.predict->size();
  const std::int64_t full = task.recipe.data.eval_batch_size;
  const std::int64_t last = (samples - 1) / full * full;
  std::int64_t first = 0;
  while (first <= last && !try_to_predict(task, first, found)) first += full;
  if (first > last)
    throw UserError(task.predict->key + ": no sample can be read (data.on_error: skip)");
  if (first < last) try_to_predict(task, last, found);
}

void choose_logits(Task& task) {
  const DataRecipe& data = task.recipe.data;
  if (task.token_batches) {
    check_logits(task, *task.train, task.token_batches->batch(0));
  } else if (task.train) {
    check_logits(task, *task.train, samples_from(0, *task.train, data.batch_size.usual));
  } else if (task.eval) {
    check_logits(task, *task.eval, samples_from(0, *task.eval, data.eval_batch_size));
  } else if (task.predict) {
    check_logits(task, *task.predict, samples_from(0, *task.predict, data.eval_batch_size));
  }
}

}  // namespace

Trial try_task(Task& task, const Member& member, std::span<const std::int64_t> first_batch) {
  Trial found;
  const StateBefore before(*task.model);
  seed_generator(static_cast<std::uint64_t>(task.recipe.seed), member.rank, 0, RandomStream::trial,
                 task.model->device());
  if (task.eval) try_evaluation(task, member, found);
  if (task.predict) try_prediction(task, found);
  if (task.train) TrainingTrial(task, first_batch, found).run();
  if (task.model->gives_logits()) choose_logits(task);
  before.restore();
  if (task.train) found.notes = check_samples(task, found.target_classes, member);
  return found;
}

}  // namespace decent
