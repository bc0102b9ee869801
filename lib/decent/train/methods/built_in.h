#pragma once
// The rows of methods.cpp, each in a file of its own, and what these files share.

#include "decent/model/model.h"
#include "decent/train/methods.h"

namespace decent {

/// A model in the form in which DecentralizedDataParallel takes modules. The model must outlive it,
/// and settles its buffers itself: see Model::settle_buffers.
class TrainedModule {
 public:
  explicit TrainedModule(Model& model) : model_(&model) {}

  const Model::NamedTensors& named_parameters() const { return model_->parameters(); }
  const Model::NamedTensors& named_buffers() const { return model_->buffers(); }
  void train(bool on = true) { model_->module().train(on); }

 private:
  Model* model_;
};

ParallelMethod gossip_method();
ParallelMethod all_reduce_method();
ParallelMethod alone_method();

}  // namespace decent
