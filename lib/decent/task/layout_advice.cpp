#include "decent/task/layout_advice.h"

#include <utility>

#include "decent/task/criterion.h"

namespace decent {
namespace {

std::optional<LayoutMismatch> mismatch_of_output(const Task& task) {
  const Criterion& criterion = task.criterion;
  if (!criterion.needs_target()) return std::nullopt;
  // The dimension of the classes, counted from 0, if it is known without the output.
  const std::int64_t class_dim = task.recipe.model.class_dim;
  const bool is_known = criterion.has_classes() && class_dim >= 0;
  return task.model->origin().output_mismatch(is_known ? std::optional(class_dim) : std::nullopt);
}

void add_inputs(const Task& task, const DataSet& data, std::int64_t batch_size,
                std::vector<LayoutMismatch>& found) {
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const Field& field = data.field(i);
    FedInput input{task.inputs[i].argument, i, field.name, {batch_size}};
    input.batch.insert(input.batch.end(), field.shape.begin(), field.shape.end());
    if (auto mismatch = task.model->origin().input_mismatch(input))
      found.push_back(std::move(*mismatch));
  }
}

}  // namespace

std::vector<std::string> layout_advice(const Task& task) {
  const DataRecipe& data = task.recipe.data;
  std::vector<LayoutMismatch> found;
  if (task.train) add_inputs(task, *task.train, data.batch_size.usual, found);
  if (found.empty() && task.eval) add_inputs(task, *task.eval, data.eval_batch_size, found);
  const auto of_output = found.empty() ? mismatch_of_output(task) : std::nullopt;
  if (of_output) found.push_back(*of_output);
  std::vector<std::string> advice;
  for (const LayoutMismatch& each : found) advice.push_back(each.text + ".\n" + each.way_out);
  return advice;
}

}  // namespace decent
