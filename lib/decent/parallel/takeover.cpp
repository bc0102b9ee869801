#include "decent/parallel/takeover.h"

#include <ATen/core/grad_mode.h>

#include "decent/core/text.h"

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

std::string no_gradient_warning(std::int64_t step, const std::vector<std::string>& parameters) {
  std::vector<std::string> quoted;
  for (const std::string& name : parameters) quoted.push_back("'" + name + "'");
  return "step " + std::to_string(step) + " gave no gradient to " + join(quoted) +
         ": averaged with the neighbours, but not updated, in such steps";
}

bool got_other_memory(const at::Tensor& tensor, const void* place) {
  return tensor.numel() > 0 && tensor.const_data_ptr() != place;
}

}  // namespace decent
