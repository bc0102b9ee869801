#include "decent/task/predict.h"

namespace decent {

Prediction predict(Model& model, std::span<const ForwardInput> inputs, const Criterion& criterion,
                   const DataSet& data, const DeviceBatch& batch) {
  const Batch& moved = batch.there();
  const at::Tensor output = model.forward(inputs, std::span(moved.fields).first(inputs.size()));
  // The host checks while the GPU computes: a wrong class in a kernel makes the GPU unusable.
  if (!model.device().is_cpu() && data.has_target)
    criterion.check_classes(output, data.target_in(batch.read().fields));
  return {.output = output, .target = data.target_in(moved.fields)};
}

Prediction predict(Model& model, std::span<const ForwardInput> inputs, const Criterion& criterion,
                   const DataSet& data, const Batch& batch) {
  return predict(model, inputs, criterion, data, DeviceBatch(batch, model.device()));
}

}  // namespace decent
