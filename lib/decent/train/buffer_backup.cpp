#include "decent/train/buffer_backup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

namespace decent {

BufferBackup::BufferBackup(const NamedTensors& buffers, bool may_overflow) {
  if (!may_overflow) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, buffer] : buffers) {
    if (!buffer.is_floating_point()) continue;
    buffers_.emplace_back(name, buffer);
    copies_.emplace_back(name, buffer.clone());
  }
}

void BufferBackup::restore_non_finite() const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const at::Tensor& buffer = buffers_[i].second;
    if (!buffer.isfinite().all().item<bool>()) buffer.copy_(copies_[i].second);
  }
}

}  // namespace decent
