#include "decent/parallel/storage.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/extent.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/optim/bucket_kernels.h"

namespace decent {
namespace {

struct NamedExtent {
  const std::string* name;
  Extent extent;
  bool alone;  // may not share memory with any other
};

void check_one(const std::string& name, const at::Tensor& tensor) {
  const std::string what = "parameter '" + name + "'";
  if (!tensor.is_cpu() && !tensor.is_cuda())
    throw UserError(what + " is on " + tensor.device().str() + ", not on the CPU or a CUDA GPU");
  if (tensor.layout() != at::kStrided) throw UserError(what + " is not a dense tensor");
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) {
    const char* way_out = tensor.is_complex()
                              ? "Keep its real and its imaginary part as two parameters"
                              : "Export the model after model.float()";
    throw UserError(what + " is " + dtype_text(tensor.scalar_type()) +
                    ": float32 and float64 can be trained. " + way_out);
  }
  if (!tensor.is_non_overlapping_and_dense()) {
    throw UserError(what + " has shape " + shape_text(tensor.sizes()) + " and strides " +
                    shape_text(tensor.strides()) +
                    ": its elements share memory or have gaps. Export it as an ordinary parameter "
                    "(torch.nn.Parameter(tensor.contiguous()))");
  }
}

void check_one_device(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const auto& [first_name, first] = parameters.front();
    if (tensor.device() == first.device()) continue;
    throw UserError("parameter '" + name + "' is on " + tensor.device().str() + ", parameter '" +
                    first_name + "' on " + first.device().str() +
                    ": all that are trained must be on one device (module.to(device))");
  }
}

// Whether the tensor's addresses can be compared. GPUs and host have no addresses in common.
bool is_addressable(const at::Tensor& tensor) {
  return (tensor.is_cpu() || tensor.is_cuda()) && tensor.layout() == at::kStrided;
}

void add_extents(const NamedTensors& tensors, bool alone, std::vector<NamedExtent>& extents) {
  for (const auto& [name, tensor] : tensors) {
    if (is_addressable(tensor) && tensor.numel() > 0)
      extents.push_back({&name,
                         extent_of(tensor.const_data_ptr(), tensor.sizes(), tensor.strides(),
                                   static_cast<std::size_t>(tensor.element_size())),
                         alone});
  }
}

void check_overlaps(std::vector<NamedExtent> extents) {
  std::sort(extents.begin(), extents.end(), [](const NamedExtent& a, const NamedExtent& b) {
    return a.extent.begin < b.extent.begin;
  });
  const NamedExtent* reach = nullptr;  // the one that ends last among those seen
  for (const NamedExtent& each : extents) {
    if (reach != nullptr && each.extent.begin < reach->extent.end && (each.alone || reach->alone)) {
      throw UserError("the tensors '" + *reach->name + "' and '" + *each.name +
                      "' of the model share memory, so that training one would change the "
                      "other unseen.\n"
                      "Export the model with tensors of their own (tensor.clone()), or as one "
                      "parameter that both "
                      "places use.");
    }
    if (reach == nullptr || each.extent.end > reach->extent.end) reach = &each;
  }
}

}  // namespace

std::size_t Bucket::parameter_at(std::int64_t offset) const {
  return static_cast<std::size_t>(std::upper_bound(offsets.begin(), offsets.end(), offset) -
                                  offsets.begin() - 1);
}

void check_storage(const NamedTensors& parameters, const NamedTensors& other_tensors,
                   const NamedTensors& base) {
  check_one_device(parameters);
  for (const auto& [name, tensor] : parameters) check_one(name, tensor);
  std::vector<NamedExtent> extents;
  add_extents(parameters, /*alone=*/true, extents);
  add_extents(base, /*alone=*/true, extents);
  add_extents(other_tensors, /*alone=*/false, extents);
  check_overlaps(std::move(extents));
}

std::vector<Bucket> build_buckets(const NamedTensors& parameters, double bucket_mb) {
  std::vector<ParameterSize> sizes;
  for (const auto& [name, tensor] : parameters) {
    sizes.push_back({tensor.numel(), static_cast<int>(tensor.element_size()),
                     static_cast<int>(tensor.scalar_type())});
  }
  const at::NoGradGuard no_grad;
  std::vector<Bucket> buckets;
  for (const PlannedBucket& planned : plan_buckets(sizes, bucket_mb)) {
    Bucket bucket;
    const at::Tensor& first = parameters[planned.placements.front().parameter].second;
    bucket.x = at::zeros(
        {planned.numel},
        at::TensorOptions(static_cast<at::ScalarType>(planned.dtype)).device(first.device()));
    for (const Placement& placement : planned.placements) {
      at::Tensor parameter = parameters[placement.parameter].second;
      const at::Tensor view =
          bucket.x.as_strided(parameter.sizes(), parameter.strides(), placement.offset);
      view.copy_(parameter);
      parameter.set_data(view);
      bucket.parameters.push_back(placement.parameter);
      bucket.offsets.push_back(placement.offset);
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

std::vector<at::Tensor> flat_tensors(const std::vector<Bucket>& buckets) {
  std::vector<at::Tensor> flat;
  for (const Bucket& bucket : buckets) flat.push_back(bucket.x);
  return flat;
}

void check_dense(const std::string& name, const at::Tensor& grad) {
  if (grad.layout() == at::kStrided) return;
  throw UserError(
      "the gradient of parameter '" + name +
      "' is sparse: export the model with dense gradients (Embedding(.., sparse=False))");
}

Scalar scalar_of(const at::Tensor& bucket) {
  return bucket.scalar_type() == at::kDouble ? Scalar::float64 : Scalar::float32;
}

const BucketKernels* kernels_of(const at::Tensor& bucket) {
  return bucket.is_cuda() ? &cuda_kernels() : nullptr;
}

}  // namespace decent
