#include "decent/parallel/global_average.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "decent/comm/lost_workers.h"
#include "decent/parallel/same_bits.h"

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

// Swaps the values of two tensors [numel] in pieces that stay in the cache of a CPU.
void swap_values(const at::Tensor& one, const at::Tensor& other) {
  const std::int64_t most = one.is_cpu() ? 1 << 14 : 1 << 24;
  for (std::int64_t begin = 0; begin < one.numel(); begin += most) {
    const std::int64_t count = std::min(most, one.numel() - begin);
    const at::Tensor piece = one.narrow(0, begin, count);
    const at::Tensor kept = piece.clone();
    piece.copy_(other.narrow(0, begin, count));
    other.narrow(0, begin, count).copy_(kept);
  }
}

// Float32 with the last bit set wherever it is not exact ("rounding to odd"): a second rounding, to
// a type that is at least two bits narrower, then comes out as a single one would.
at::Tensor rounded_to_odd(const at::Tensor& values) {
  const at::Tensor floats = values.to(at::kFloat);
  const at::Tensor error = values.sub(floats.to(at::kDouble));
  const at::Tensor bits = floats.view(at::kInt);
  const at::Tensor outwards = error.gt(0).eq(bits.ge(0));  // the exact value is further from zero
  const at::Tensor step = outwards.to(at::kInt).mul_(2).sub_(1);
  const at::Tensor even = bits.bitwise_and(1).eq(0);
  const at::Tensor moves = error.ne(0).logical_and_(error.isfinite()).logical_and_(even);
  return at::where(moves, bits.add(step), bits).view(at::kFloat);
}

}  // namespace

GlobalAverage::GlobalAverage(std::shared_ptr<Communicator> communicator,
                             std::vector<at::Tensor> buckets, const NamedTensors& buffers,
                             const AverageOptions& options)
    : communicator_(std::move(communicator)), buckets_(std::move(buckets)), alike_(options.alike) {
  for (const auto& [name, buffer] : buffers) {
    const bool averaged = options.average_buffers && at::isFloatingType(buffer.scalar_type());
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
  moving_ = alike_ ? differing(buckets_) : buckets_;
  if (keep_backup) {
    buffer_backup_ = clones(averaged_buffers_);
    for (const at::Tensor& buffer : copied_buffers_) buffer_backup_.push_back(buffer.clone());
  }
  try {
    average_buckets(/*keep_backup=*/keep_backup || return_distance);
    averaged_ = keep_backup;
    average_buffers();
    if (return_distance) distance_ = distance_to(bucket_backup_);
  } catch (const GivenUp&) {
    if (averaged_) revert();
    throw;
  }
  if (!keep_backup) bucket_backup_.clear();
  return distance();
}

// With a backup, the sums are computed beside the buckets: should they be given up, the buckets
// have not changed, and nothing that is still under way can change them.
void GlobalAverage::average_buckets(bool keep_backup) {
  bucket_backup_.clear();
  if (communicator_->size() == 1) {
    if (keep_backup) bucket_backup_ = clones(moving_);
    return;
  }
  const MeanFactors factors = mean_factors(communicator_->size());
  std::vector<at::Tensor> sums;
  std::vector<Pending> works;
  for (const at::Tensor& bucket : moving_) {
    sums.push_back(keep_backup ? bucket.mul(factors.addend) : bucket.mul_(factors.addend));
    works.push_back(communicator_->all_reduce_sum(sums.back()));
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i]->wait();
    sums[i].div_(factors.divisor);
  }
  if (!keep_backup) return;
  for (std::size_t i = 0; i < sums.size(); ++i) swap_values(sums[i], moving_[i]);
  bucket_backup_ = std::move(sums);
}

// The tensors that are not the same on all workers.
std::vector<at::Tensor> GlobalAverage::differing(const std::vector<at::Tensor>& tensors) const {
  const auto count = static_cast<std::int64_t>(tensors.size());
  std::vector<at::Tensor> differing;
  if (count == 0) return differing;
  const at::Tensor table = at::zeros({communicator_->size(), count}, at::kLong);
  table[communicator_->rank()].copy_(bit_hashes(tensors));
  const std::vector<bool> same = same_in_all_rows(*communicator_, table);
  for (std::size_t i = 0; i < same.size(); ++i) {
    if (!same[i]) differing.push_back(tensors[i]);
  }
  return differing;
}

// Buffers with the same bits everywhere stay as they are: arithmetic could spoil a mask that holds
// the lowest number of its type. Buffers may have any strides; sending needs contiguous tensors.
void GlobalAverage::average_buffers() {
  if (communicator_->size() == 1) return;
  const MeanFactors factors = mean_factors(communicator_->size());
  const std::vector<at::Tensor> buffers = differing(averaged_buffers_);
  std::vector<at::Tensor> sums;
  std::vector<Pending> works;
  for (const at::Tensor& buffer : buffers) {
    sums.push_back(buffer.to(at::kDouble).contiguous().mul(factors.addend));
    works.push_back(communicator_->all_reduce_sum(sums.back()));
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i]->wait();
    copy_rounded_once(buffers[i], sums[i].div_(factors.divisor));
  }
  for (const at::Tensor& buffer : copied_buffers_) {
    const at::Tensor value = buffer.clone(at::MemoryFormat::Contiguous);
    communicator_->broadcast(value, 0)->wait();
    buffer.copy_(value);
  }
}

double GlobalAverage::distance_to(const std::vector<at::Tensor>& own) const {
  // Norms are read together at the end, because each read from a GPU waits for it.
  std::vector<at::Tensor> norms;
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    const at::Tensor difference = own[i].sub(moving_[i]);
    norms.push_back(at::linalg_vector_norm(difference, 2, {}, false, at::kDouble));
  }
  double squares = 0;
  if (!norms.empty()) {
    const at::Tensor read = at::stack(norms).to(at::kCPU);
    for (std::int64_t i = 0; i < read.size(0); ++i) {
      const double norm = read.const_data_ptr<double>()[i];
      squares += norm * norm;
    }
  }
  const at::Tensor total = at::scalar_tensor(squares, at::kDouble);
  communicator_->all_reduce_sum(total)->wait();
  return std::sqrt(total.item<double>() / communicator_->size());
}

void GlobalAverage::revert() {
  if (!averaged_)
    throw std::logic_error(
        "nothing to revert: global_avg() was not called, was called for good (false), or is "
        "reverted already");
  const at::NoGradGuard no_grad;
  copy_all(moving_, bucket_backup_.data());
  copy_all(averaged_buffers_, buffer_backup_.data());
  copy_all(copied_buffers_, buffer_backup_.data() + averaged_buffers_.size());
  commit();
}

void GlobalAverage::commit() {
  averaged_ = false;
  bucket_backup_.clear();
  buffer_backup_.clear();
}

void copy_rounded_once(const at::Tensor& target, const at::Tensor& values) {
  const bool directly = target.element_size() >= 4;
  target.copy_(directly ? values : rounded_to_odd(values.contiguous()));
}

}  // namespace decent
