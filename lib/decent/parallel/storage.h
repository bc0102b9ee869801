#pragma once
// The memory of trained parameters: they are views of flat buckets.

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/bucket_plan.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

/// A flat bucket and the parameters that are views of it.
struct Bucket {
  at::Tensor x;                         // [numel], zero between parameters
  std::vector<std::size_t> parameters;  // index in `parameters` given to build_buckets
  std::vector<std::int64_t> offsets;    // elements, of each of them, in ascending order

  /// The place in `parameters` of the (not empty) parameter that has element `offset`.
  std::size_t parameter_at(std::int64_t offset) const;
};

/// Checks that every parameter can be trained in place: float32 or float64, all on the CPU or all
/// on the same CUDA GPU, dense, and not sharing memory with any other tensor; nor may one of
/// `base`, the parameters that adapters change or leave as they are. Throws UserError naming the
/// tensors.
void check_storage(const NamedTensors& parameters, const NamedTensors& other_tensors,
                   const NamedTensors& base = {});

/// Throws UserError if the gradient of the parameter `name` is sparse.
void check_dense(const std::string& name, const at::Tensor& grad);

/// Moves parameters into flat buckets of `bucket_mb` MiB on their device. They become views at
/// offsets aligned to 128 bytes and keep their strides. It uses set_data, so every holder of a
/// tensor sees the new memory.
std::vector<Bucket> build_buckets(const NamedTensors& parameters, double bucket_mb);

std::vector<at::Tensor> flat_tensors(const std::vector<Bucket>& buckets);

/// The element type: float32 or float64; check_storage permits no other type.
Scalar scalar_of(const at::Tensor& bucket);

/// The kernels of the bucket's device; null for the CPU, as in BucketStep. Throws UserError if the
/// CUDA library cannot be loaded.
const BucketKernels* kernels_of(const at::Tensor& bucket);

}  // namespace decent
