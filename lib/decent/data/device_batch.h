#pragma once
// Batches on the device of a model.

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "decent/data/batch.h"
#include "decent/data/prefetcher.h"

namespace decent {

/// A batch as it was read and, with a GPU, its copy there. After an error on a GPU neither is
/// freed: giving back pinned memory from which the GPU was copying needs a working GPU, and without
/// one the program would end right there, before it has reported the error. Threads: only the one
/// that computes with the batch.
class DeviceBatch {
 public:
  /// Begins to copy the batch on the current stream, or on `stream`, where the copy waits for the
  /// work that is on the current stream by now. On the CPU the batch is kept as it is.
  DeviceBatch(Batch batch, at::Device device, std::optional<c10::Stream> stream = std::nullopt);
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;
  ~DeviceBatch();

  /// The batch in the host's memory.
  const Batch& read() const { return read_; }
  /// The batch on the device. Work that is put on the current stream from now on waits for the
  /// copy.
  const Batch& there() const;

 private:
  void wait() const;

  Batch read_;
  at::Device device_;
  Batch copy_;                        // on a GPU, in memory of the current stream
  std::optional<c10::Event> copied_;  // set if another stream copies
  int exceptions_ = std::uncaught_exceptions();
};

/// The batches of a prefetcher on a device, in their order. With a GPU, the next batch is copied
/// there, on a stream of its own, while the GPU computes with the one before. If the consumer drops
/// each batch before it asks for the next, the GPU holds two. Threads: only the consumer's.
class DeviceBatches {
 public:
  /// `batches` must outlive this object.
  DeviceBatches(Prefetcher& batches, at::Device device);

  /// Waits for the next batch and returns it. Begins to copy the batch after it, if that was
  /// already read. Throws as Prefetcher::next does.
  std::unique_ptr<DeviceBatch> next();
  bool done() const { return ahead_ == nullptr && batches_.done(); }

 private:
  std::unique_ptr<DeviceBatch> make(Batch batch) const;

  Prefetcher& batches_;
  at::Device device_;
  std::optional<c10::Stream> stream_;  // of copies to a GPU
  std::unique_ptr<DeviceBatch> ahead_;
};

}  // namespace decent
