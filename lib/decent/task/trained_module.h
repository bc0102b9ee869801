#pragma once
// A model as DecentralizedDataParallel takes modules.

#include "decent/model/torchscript_model.h"

namespace decent {

/// The model outlives it and settles its buffers itself: see TorchScriptModel::settle_buffers.
class TrainedModule {
 public:
  explicit TrainedModule(TorchScriptModel& model) : model_(&model) {}

  const TorchScriptModel::NamedTensors& named_parameters() const { return model_->parameters(); }
  const TorchScriptModel::NamedTensors& named_buffers() const { return model_->buffers(); }
  void train(bool on = true) { model_->module().train(on); }

 private:
  TorchScriptModel* model_;
};

}  // namespace decent
