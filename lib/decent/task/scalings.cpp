#include "decent/task/scalings.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <utility>

#include "decent/core/error.h"

namespace decent {
namespace {

constexpr const char* kName = "normalize";

// [1, C, 1, ..] for a batch [B, C, ..].
at::Tensor by_place(const std::vector<double>& values, const at::Tensor& batch) {
  const at::Tensor tensor = at::tensor(values, at::kDouble);
  if (values.size() == 1) return tensor.reshape({});  // a kernel takes it as an argument
  std::vector<std::int64_t> shape(static_cast<std::size_t>(batch.dim()), 1);
  shape.at(1) = tensor.numel();
  return tensor.reshape(shape).to(batch.device());
}

std::vector<Scaling> scalings_of(const std::vector<Normalization>& normalizations) {
  std::vector<Scaling> scalings;
  for (const Normalization& each : normalizations) scalings.push_back({each.mean, each.std});
  return scalings;
}

// Refuses a transform of evaluation behind a normalization of the field: users of the model would
// have to apply it before the model normalizes.
void check_order(const DataRecipe& recipe, const std::string& field) {
  bool normalized = false;
  for (const TransformRecipe& each : recipe.transforms_of_evaluation()) {
    const auto its_field = each.options.get_if<std::string>("field");
    if (its_field && *its_field != field) continue;
    if (each.name == kName) {
      normalized = true;
      continue;
    }
    const Transform row = transform_row(each.name);
    if (!normalized || !row.make) continue;
    const auto transform = row.make(each.options);
    if (transform->random() && transform->in_evaluation() == nullptr) continue;
    throw UserError("data.export_transforms: " + each.name + " stands behind normalize in " +
                    recipe.key_of_evaluation() +
                    ", and cannot be put into the model; put it in front of normalize");
  }
}

}  // namespace

std::vector<Normalization> normalizations_of(const std::vector<TransformRecipe>& transforms,
                                             const std::string& field) {
  std::vector<Normalization> found;
  for (const TransformRecipe& each : transforms) {
    if (each.name != kName || each.options.get<std::string>("field") != field) continue;
    found.push_back(normalization_of(each.options));
  }
  return found;
}

at::Tensor in_original_units(const at::Tensor& batch,
                             std::span<const Normalization> normalizations) {
  at::Tensor numbers = batch.to(at::kDouble);
  for (auto each = normalizations.rbegin(); each != normalizations.rend(); ++each)
    numbers = numbers * by_place(each->std, numbers) + by_place(each->mean, numbers);
  return numbers;
}

FileScaling exported_scaling(const Task& task) {
  const DataRecipe& data = task.recipe.data;
  const auto normalizations = [&](const std::string& field) {
    return normalizations_of(data.transforms_of_evaluation(), field);
  };
  FileScaling scaling;
  if (!data.export_transforms) return scaling;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const auto found = normalizations(task.inputs[i].field);
    if (found.empty()) continue;
    check_order(data, task.inputs[i].field);
    scaling.arguments.push_back({task.model->argument_of(task.inputs, i), scalings_of(found)});
  }
  if (task.criterion.loss().target == TargetKind::numbers) {
    check_order(data, task.recipe.model.target);
    scaling.output = scalings_of(normalizations(task.recipe.model.target));
  }
  if (scaling.empty()) {
    throw UserError(std::string("data.export_transforms: ") + data.key_of_evaluation() +
                    " has no normalize of a field that the model takes");
  }
  check_scaling(*task.model, scaling);
  return scaling;
}

}  // namespace decent
