#pragma once
// A model in the form in which DecentralizedDataParallel takes modules.

#include "decent/model/model.h"

namespace decent {

/// The model must outlive it, and settles its buffers itself: see Model::settle_buffers.
class TrainedModule {
 public:
  explicit TrainedModule(Model& model) : model_(&model) {}

  const Model::NamedTensors& named_parameters() const { return model_->parameters(); }
  const Model::NamedTensors& named_buffers() const { return model_->buffers(); }
  void train(bool on = true) { model_->module().train(on); }

 private:
  Model* model_;
};

}  // namespace decent
