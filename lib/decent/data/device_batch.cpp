#include "decent/data/device_batch.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace decent {
namespace {

using Gpu = c10::impl::VirtualGuardImpl;

// One stream for the process, which uses one GPU. The pool has few streams, and NCCL takes some of
// them.
c10::Stream copy_stream(at::Device device) {
  static const c10::Stream stream =
      Gpu(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  return stream;
}

}  // namespace

// The copy's memory belongs to the current stream, although another stream may write it. That use
// need not be recorded: the allocator reuses the memory in the order of the current stream, which
// waits for the copy. So freeing it makes no call to CUDA.
DeviceBatch::DeviceBatch(Batch batch, at::Device device, std::optional<c10::Stream> stream)
    : read_(std::move(batch)), device_(device) {
  if (device.is_cpu()) return;
  for (const at::Tensor& field : read_.fields)
    copy_.fields.push_back(at::empty_like(field, at::TensorOptions().device(device)));
  const c10::Stream current = Gpu(device.type()).getStream(device);
  const c10::StreamGuard on_stream(stream.value_or(current));
  if (stream) {
    c10::Event memory_is_free(device.type());
    memory_is_free.record(current);
    memory_is_free.block(*stream);
  }
  // The allocator keeps pinned memory until the copy from it is done, even if the batch is dropped
  // before.
  for (std::size_t i = 0; i < read_.fields.size(); ++i)
    copy_.fields[i].copy_(read_.fields[i], /*non_blocking=*/true);
  if (!stream) return;
  copied_.emplace(device.type());
  copied_->record(*stream);
}

DeviceBatch::~DeviceBatch() {
  bool failed = std::uncaught_exceptions() > exceptions_;
  try {
    if (!failed) wait();  // again, or for the first time if the batch was never used
  } catch (const std::exception&) {
    failed = true;
  }
  if (!failed || device_.is_cpu()) return;
  static_cast<void>(new Batch(std::move(read_)));
  static_cast<void>(new Batch(std::move(copy_)));
}

void DeviceBatch::wait() const {
  if (copied_) copied_->block(Gpu(device_.type()).getStream(device_));
}

const Batch& DeviceBatch::there() const {
  if (device_.is_cpu()) return read_;
  wait();
  return copy_;
}

DeviceBatches::DeviceBatches(Prefetcher& batches, at::Device device)
    : batches_(batches), device_(device) {
  if (!device.is_cpu()) stream_ = copy_stream(device);
}

std::unique_ptr<DeviceBatch> DeviceBatches::make(Batch batch) const {
  return std::make_unique<DeviceBatch>(std::move(batch), device_, stream_);
}

std::unique_ptr<DeviceBatch> DeviceBatches::next() {
  std::unique_ptr<DeviceBatch> batch = ahead_ ? std::move(ahead_) : make(batches_.next());
  if (stream_ && batches_.ready()) ahead_ = make(batches_.next());
  return batch;
}

}  // namespace decent
