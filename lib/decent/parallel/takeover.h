#pragma once
// What comes with taking parameters over for training, whoever updates them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/replica.h"

namespace decent {

std::vector<at::Tensor> flat_tensors(const std::vector<Bucket>& buckets);

/// Everyone gets rank 0's buckets and other tensors. Collective.
void broadcast_start(Communicator& world, const std::vector<Bucket>& buckets,
                     const NamedTensors& others);

/// Whether `tensor` no longer is where it was put (set_data, torch::load, Module::to), so that it
/// would be neither updated nor averaged.
bool got_other_memory(const at::Tensor& tensor, const void* place);

/// What to warn of where step `step` gave these parameters no gradient.
std::string no_gradient_warning(std::int64_t step, const std::vector<std::string>& parameters);

}  // namespace decent
