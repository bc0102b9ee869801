#include "decent/train/buffer_backup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <utility>

namespace decent {

BufferBackup::BufferBackup(NamedTensors tensors) : tensors_(std::move(tensors)) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors_) copies_.emplace_back(name, tensor.clone());
}

void BufferBackup::restore() const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].second.copy_(copies_[i].second);
}

void BufferBackup::restore_non_finite() const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& tensor = tensors_[i].second;
    if (!tensor.isfinite().all().item<bool>()) tensor.copy_(copies_[i].second);
  }
}

}  // namespace decent
