#include "decent/task/non_finite.h"

#include <ATen/Functions.h>

#include <optional>

#include "decent/core/text.h"

namespace decent {
namespace {

constexpr const char* kTrainGently =
    "\nA smaller optimizer.lr or a longer schedule.warmup_steps may help.";

std::int64_t count_non_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return 0;
  return tensor.numel() - at::isfinite(tensor).sum().item<std::int64_t>();
}

std::string first_bad(const std::string& what, const at::Tensor& tensor, std::int64_t bad) {
  return what + " is the first that is not finite (" + std::to_string(bad) + " of its " +
         counted(tensor.numel(), "value") + ")";
}

// The place in the batch of the first sample of a field [B, ..] with such a value.
std::int64_t first_bad_row(const at::Tensor& field) {
  const at::Tensor bad = at::isfinite(field).logical_not().reshape({field.size(0), -1});
  return bad.any(1).to(at::kInt).argmax().item<std::int64_t>();
}

std::optional<std::string> bad_field(const Task& task, const TrainedBatch& batch) {
  const DataSet& data = *task.train;
  for (std::size_t i = 0; i < batch.read.fields.size(); ++i) {
    const at::Tensor& field = batch.read.fields[i];
    const std::int64_t bad = count_non_finite(field);
    if (bad == 0) continue;
    const bool is_target = data.has_target && i + 1 == batch.read.fields.size();
    const std::string name =
        "field '" + data.field(i).name + "' of the batch" + (is_target ? " (model.target)" : "");
    const auto row = static_cast<std::size_t>(first_bad_row(field));
    return first_bad(name, field, bad) + ": " + data.text_of(batch.samples[row]) + " of " +
           data.key +
           ", counted from 0.\nWhere such values are not meant, replace them in the data or leave "
           "out "
           "their samples (np.isfinite finds them).";
  }
  return std::nullopt;
}

std::string cause(const Task& task, const TrainedBatch& batch) {
  for (const auto& [name, parameter] : task.model->all_parameters()) {
    if (const std::int64_t bad = count_non_finite(parameter)) {
      return first_bad("parameter '" + name + "'", parameter, bad) + "." + kTrainGently;
    }
  }
  if (const auto field = bad_field(task, batch)) return *field;
  if (const std::int64_t bad = count_non_finite(batch.output)) {
    return first_bad("the model's output", batch.output, bad) + "." + kTrainGently;
  }
  return std::string("parameters, batch and output are finite, the loss of them is not.") +
         kTrainGently;
}

}  // namespace

std::string divergence_text(const Task& task, const TrainedBatch& batch) {
  return "training diverged: the loss of step " + std::to_string(batch.step) + " is " +
         std::to_string(printable(batch.loss)) + "; " + cause(task, batch);
}

}  // namespace decent
