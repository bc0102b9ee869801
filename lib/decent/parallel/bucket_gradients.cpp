#include "decent/parallel/bucket_gradients.h"

#include <ATen/ops/empty_strided.h>

#include <utility>

namespace decent {
namespace {

bool in_memory_order_of(const at::Tensor& parameter, const at::Tensor& grad) {
  for (std::int64_t d = 0; d < parameter.dim(); ++d) {
    if (parameter.size(d) != 1 && parameter.stride(d) != grad.stride(d)) return false;
  }
  return true;
}

// Brings the gradient into the parameter's memory order, in which the update runs.
void give_order_of(const at::Tensor& parameter, at::Tensor& grad) {
  if (in_memory_order_of(parameter, grad)) return;
  grad = at::empty_strided(parameter.sizes(), parameter.strides(), grad.options()).copy_(grad);
}

}  // namespace

BucketGradients own_gradients(const Replica& replica, std::size_t bucket,
                              std::vector<BucketSlice> slices) {
  BucketGradients gradients{.slices = std::move(slices), .present = {}};
  const std::vector<std::size_t>& parameters = replica.buckets()[bucket].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = replica.parameters()[parameters[i]];
    at::Tensor& grad = at::Tensor(tensor).mutable_grad();
    gradients.present.push_back(grad.defined());
    if (!grad.defined()) continue;
    check_dense(name, grad);
    give_order_of(tensor, grad);
    gradients.slices[i].grad = grad.const_data_ptr();
  }
  return gradients;
}

}  // namespace decent
