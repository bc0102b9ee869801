#include "decent/parallel/late_read.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace decent {

void LateRead::start(const at::Tensor& values) {
  if (!values.is_cuda()) {
    host_ = values;
    return;
  }
  if (!room_.defined() || room_.numel() < values.numel()) {
    room_ = at::empty({values.numel()},
                      at::TensorOptions().dtype(at::kDouble).device(at::kCPU).pinned_memory(true));
  }
  host_ = room_.narrow(0, 0, values.numel());
  host_.copy_(values, /*non_blocking=*/true);
  if (!copied_) copied_.emplace(at::kCUDA);
  copied_->record(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(values.device()));
}

at::Tensor LateRead::take() {
  if (copied_) copied_->synchronize();
  return std::exchange(host_, {});
}

}  // namespace decent
