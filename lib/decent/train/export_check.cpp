#include "decent/train/export_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/batch.h"
#include "decent/model/formats.h"
#include "decent/model/precision.h"
#include "decent/task/criterion.h"
#include "decent/task/passes.h"
#include "decent/task/probabilities.h"
#include "decent/task/random.h"

namespace decent {
namespace {

// The batch size that the file asks for, if it does; else a few samples.
std::int64_t samples_for(const Model& model, std::int64_t available) {
  constexpr std::int64_t kFewSamples = 8;
  return std::min(model.origin().fixed_batch().value_or(kFewSamples), available);
}

// A forward may write into its inputs (x.mul_(2)), and the next model must not see the changes.
Batch copy_of(const Batch& batch) {
  Batch copy;
  for (const at::Tensor& field : batch.fields) copy.fields.push_back(field.clone());
  return copy;
}

// Both models draw the same random numbers, if they draw any in eval mode.
at::Tensor output_of(Model& model, const Task& task, const DataSet& data, const Batch& batch) {
  model.eval();
  seed_generator(static_cast<std::uint64_t>(task.recipe.seed), 0, 0, RandomStream::trial,
                 model.device());
  return predict(model, task.inputs, task.criterion, data, copy_of(batch)).output;
}

// Both run the same operators on the same weights, so only the order of sums may differ. On the CPU
// it depends on the alignment of memory. On a GPU, cuDNN also chooses the algorithm by alignment,
// and one with transforms (Winograd, FFT) loses a decimal digit against plain sums.
double tolerance_on(at::Device device) { return device.is_cpu() ? 1e-5 : 1e-4; }

std::string compare(Task& task, const std::filesystem::path& file, const DataSet& data) {
  const at::NoGradGuard no_grad;
  const ExactMath exact;  // one in TF32 and the other not would differ by 1e-3
  Model written = open_model(file, import_options(task.recipe.model));
  const bool logits = task.model->gives_logits();
  const auto autocast = task.model->autocast();
  task.model->give_logits(false);  // users of the file get no logits
  task.model->set_autocast(std::nullopt);
  written.give_logits(false);
  if (task.recipe.model.memory_format == MemoryFormat::channels_last) written.use_channels_last();
  written.move_to(task.model->device());
  task.model->origin().round_to_file_types(*task.model);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(samples_for(written, data.size())));
  std::iota(samples.begin(), samples.end(), 0);
  const Batch batch = data.read(samples);
  const at::Tensor ours = output_of(*task.model, task, data, batch).to(at::kDouble);
  const at::Tensor theirs = output_of(written, task, data, batch).to(at::kDouble);
  task.model->give_logits(logits);
  task.model->set_autocast(autocast);
  const double scale = std::max(1.0, ours.abs().max().item<double>());
  const double tolerance = tolerance_on(task.model->device());
  if (at::allclose(ours, theirs, tolerance, tolerance * scale, /*equal_nan=*/true)) {
    return "checked: " + counted(std::ssize(samples), "sample") + " of " + data.key +
           (samples.size() == 1 ? " comes" : " come") + " out the same from '" + file.string() +
           "'";
  }
  throw std::logic_error("'" + file.string() +
                         "' was written, but does not compute what the model in memory does");
}

}  // namespace

std::string check_export(Task& task, const std::filesystem::path& file) {
  const Recipe& recipe = task.recipe;
  DataSet data;
  try {
    data = open_data_set(recipe.data.eval ? "data.eval" : "data.train", recipe, DataUse::evaluation,
                         &task.learned);
  } catch (const UserError& error) {
    return std::string("not checked on data: ") + error.what();
  }
  return compare(task, file, data);
}

}  // namespace decent
