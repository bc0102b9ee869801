#include "decent/parallel/global_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <stdexcept>

namespace decent {
namespace {

std::vector<at::Tensor> clones(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

void copy_all(const std::vector<at::Tensor>& to, const at::Tensor* from) {
  for (const at::Tensor& tensor : to) tensor.copy_(*from++);
}

}  // namespace

GlobalAverage::GlobalAverage(std::shared_ptr<Communicator> world, std::vector<at::Tensor> buckets,
                             const NamedTensors& buffers, bool average_buffers)
    : world_(std::move(world)), buckets_(std::move(buckets)) {
  for (const auto& [name, buffer] : buffers) {
    const bool averaged = average_buffers && at::isFloatingType(buffer.scalar_type());
    (averaged ? averaged_buffers_ : copied_buffers_).push_back(buffer);
  }
}

std::optional<double> GlobalAverage::average(bool keep_backup, bool return_distance) {
  const at::NoGradGuard no_grad;
  const auto distance = [&] { return return_distance ? std::optional(distance_) : std::nullopt; };
  if (averaged_) {  // all copies are equal already
    if (return_distance) distance_ = distance_to(bucket_backup_);
    if (!keep_backup) commit();
    return distance();
  }
  if (keep_backup) {
    buffer_backup_ = clones(averaged_buffers_);
    for (const at::Tensor& buffer : copied_buffers_) buffer_backup_.push_back(buffer.clone());
  }
  if (keep_backup || return_distance) bucket_backup_ = clones(buckets_);
  average_buckets();
  average_buffers();
  if (return_distance) distance_ = distance_to(bucket_backup_);
  averaged_ = keep_backup;
  if (!keep_backup) bucket_backup_.clear();
  return distance();
}

void GlobalAverage::average_buckets() {
  std::vector<Pending> works;
  for (const at::Tensor& bucket : buckets_) works.push_back(world_->all_reduce_sum(bucket));
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i]->wait();
    buckets_[i].div_(world_->size());
  }
}

// Buffers may have any strides, the wire needs contiguous ones.
void GlobalAverage::average_buffers() {
  if (world_->size() == 1) return;
  for (const at::Tensor& buffer : averaged_buffers_) {
    const at::Tensor sum = buffer.contiguous();
    world_->all_reduce_sum(sum)->wait();
    buffer.copy_(sum.div_(world_->size()));
  }
  for (const at::Tensor& buffer : copied_buffers_) {
    const at::Tensor value = buffer.contiguous();
    world_->broadcast(value, 0)->wait();
    buffer.copy_(value);
  }
}

double GlobalAverage::distance_to(const std::vector<at::Tensor>& own) const {
  // Read once, after all: each reading of a number on a GPU waits for it.
  std::vector<at::Tensor> norms;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const at::Tensor difference = own[i].sub(buckets_[i]);
    norms.push_back(at::linalg_vector_norm(difference, 2, {}, false, at::kDouble));
  }
  const at::Tensor read = at::stack(norms).to(at::kCPU);
  double squares = 0;
  for (std::int64_t i = 0; i < read.size(0); ++i) {
    const double norm = read.const_data_ptr<double>()[i];
    squares += norm * norm;
  }
  const at::Tensor total = at::scalar_tensor(squares, at::kDouble);
  world_->all_reduce_sum(total)->wait();
  return std::sqrt(total.item<double>() / world_->size());
}

void GlobalAverage::revert() {
  if (!averaged_)
    throw std::logic_error(
        "nothing to revert: global_avg() was not called, was called for good (false), or is "
        "reverted already");
  const at::NoGradGuard no_grad;
  copy_all(buckets_, bucket_backup_.data());
  copy_all(averaged_buffers_, buffer_backup_.data());
  copy_all(copied_buffers_, buffer_backup_.data() + averaged_buffers_.size());
  commit();
}

void GlobalAverage::commit() {
  averaged_ = false;
  bucket_backup_.clear();
  buffer_backup_.clear();
}

}  // namespace decent
