#pragma once
// Decentralized data-parallel training of a module: torch::jit::Module, a torch::nn module holder
// (TORCH_MODULE) or a std::shared_ptr to a torch::nn::Module.
//
//     decent::DecentralizedDataParallel model(
//         std::make_shared<Net>(), workers.communicator(),
//         {.topology = "ring",
//          .training = {.update = decent::make_update("adamw"),
//                       .schedule = decent::constant_lr(1e-3)}});
//     loss(model.forward(x), y).backward();   // averages with the neighbours and updates, too
//

#include <memory>
#include <utility>

#include "decent/parallel/decentralized_parameters.h"
#include "decent/parallel/parallel_module.h"

namespace decent {

/// A module whose backward() averages its parameters with the neighbours and updates them.
/// DecentralizedParameters documents it and set_adaptive_factor(), TrainedParameters the rest.
template <typename Module>
class DecentralizedDataParallel : public ParallelModule<Module, DecentralizedParameters> {
 public:
  /// Collective. Throws UserError as DecentralizedParameters does.
  DecentralizedDataParallel(Module module, std::shared_ptr<Communicator> communicator,
                            DecentralizedOptions options)
      : ParallelModule<Module, DecentralizedParameters>(std::move(module), std::move(communicator),
                                                        std::move(options)) {}
};

}  // namespace decent
