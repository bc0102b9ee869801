#include "decent/parallel/takeover.h"

#include <ATen/core/grad_mode.h>

namespace decent {

std::vector<at::Tensor> flat_tensors(const std::vector<Bucket>& buckets) {
  std::vector<at::Tensor> flat;
  for (const Bucket& bucket : buckets) flat.push_back(bucket.x);
  return flat;
}

void broadcast_start(Communicator& world, const std::vector<Bucket>& buckets,
                     const NamedTensors& others) {
  const at::NoGradGuard no_grad;
  for (const Bucket& bucket : buckets) world.broadcast(bucket.x, 0)->wait();
  for (const auto& [name, tensor] : others) {
    const at::Tensor value = tensor.contiguous();  // a copy where the tensor has other strides
    world.broadcast(value, 0)->wait();
    if (!value.is_same(tensor)) tensor.copy_(value);
  }
}

bool got_other_memory(const at::Tensor& tensor, const void* place) {
  return tensor.numel() > 0 && tensor.const_data_ptr() != place;
}

}  // namespace decent
