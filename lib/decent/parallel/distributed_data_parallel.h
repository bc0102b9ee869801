#pragma once
// Data-parallel training of a module by averaged gradients, the counterpart of PyTorch's
// DistributedDataParallel: torch::jit::Module, a torch::nn module holder (TORCH_MODULE) or a
// std::shared_ptr to a torch::nn::Module.
//
//     decent::DistributedDataParallel model(net, workers.communicator());
//     torch::optim::AdamW optimizer(net->parameters(), 1e-3);
//     ..
//     loss(model.forward(x), y).backward();   // .grad holds the mean over all workers now
//     optimizer.step();
//
// or, faster, with an update inside backward(), bucket by bucket:
//
//     decent::DistributedDataParallel model(net, workers.communicator(),
//                                           {.training = {.update = decent::make_update("adamw"),
//                                                         .schedule = decent::constant_lr(1e-3)}});
//     loss(model.forward(x), y).backward();   // updates, too

#include <memory>
#include <utility>

#include "decent/parallel/distributed_parameters.h"
#include "decent/parallel/parallel_module.h"

namespace decent {

/// A module whose backward() averages gradients over all workers. DistributedParameters documents
/// it; TrainedParameters the rest. Each worker has buffers of its own, which global_avg() averages.
template <typename Module>
class DistributedDataParallel : public ParallelModule<Module, DistributedParameters> {
 public:
  /// Collective. Throws UserError as DistributedParameters does.
  DistributedDataParallel(Module module, std::shared_ptr<Communicator> communicator,
                          DistributedDataParallelOptions options = {})
      : ParallelModule<Module, DistributedParameters>(std::move(module), std::move(communicator),
                                                      std::move(options)) {}
};

}  // namespace decent
