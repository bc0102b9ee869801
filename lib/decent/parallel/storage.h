#pragma once
// Where parameters are that are trained: views of flat buckets.

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "decent/parallel/bucket_plan.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

/// A flat bucket and the parameters that are views of it.
struct Bucket {
  at::Tensor x;                         // [numel], zero between parameters
  std::vector<std::size_t> parameters;  // index in `parameters` given to build_buckets
  std::vector<std::int64_t> offsets;    // elements, of each of them
};

/// Checks that every parameter can be trained in place: floating point (float32 or float64), on the
/// CPU or a CUDA GPU, the same for all, dense, not sharing memory with any other tensor. Throws
/// UserError naming the tensors.
void check_storage(const NamedTensors& parameters, const NamedTensors& other_tensors);

/// Throws UserError where the gradient of the parameter `name` is sparse.
void check_dense(const std::string& name, const at::Tensor& grad);

/// Moves parameters into flat buckets of `bucket_mb` MiB: they become views at offsets aligned to
/// 128 bytes, strides kept, through set_data, so that every holder of the tensor sees the move. On
/// the device that the parameters are on.
std::vector<Bucket> build_buckets(const NamedTensors& parameters, double bucket_mb);

std::vector<at::Tensor> flat_tensors(const std::vector<Bucket>& buckets);

}  // namespace decent
