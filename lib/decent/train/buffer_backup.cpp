#include "decent/train/buffer_backup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>

namespace decent {

BufferBackup::BufferBackup(const NamedTensors& buffers, bool may_overflow) {
  if (!may_overflow) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, buffer] : buffers) {
    if (!buffer.is_floating_point()) continue;
    buffers_.push_back(buffer);
    copies_.push_back(at::empty_like(buffer));
  }
  if (!buffers_.empty()) at::_foreach_copy_(copies_, buffers_);  // on a GPU, one kernel for many
}

void BufferBackup::restore_non_finite() const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].isfinite().all().item<bool>()) buffers_[i].copy_(copies_[i]);
  }
}

}  // namespace decent
