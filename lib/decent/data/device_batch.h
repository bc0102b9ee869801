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

/// A batch as it was read and, on a GPU, its copy there. After an error on a GPU neither is freed:
/// to give back pinned memory that the GPU was copying from takes a GPU that still works, without
/// which the program would end right there, before it has told of the error. Threads: one, which
/// computes with the batch.
class DeviceBatch {
 public:
  /// Begins to copy the batch on the current stream, or on `stream`, where the copy waits for what
  /// the current one has to do by now. On the CPU the batch is kept as it is.
  DeviceBatch(Batch batch, at::Device device, std::optional<c10::Stream> stream = std::nullopt);
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;
  ~DeviceBatch();

  /// In the host's memory.
  const Batch& read() const { return read_; }
  /// On the device. What is put on the current stream from now on comes after the copy.
  const Batch& there() const;

 private:
  void wait() const;

  Batch read_;
  at::Device device_;
  Batch copy_;                        // on a GPU, in memory of the current stream
  std::optional<c10::Event> copied_;  // where another stream copies
  int exceptions_ = std::uncaught_exceptions();
};

/// The batches of a prefetcher on a device, in their order. With a GPU, the next one is copied
/// there, on a stream of its own, while the GPU computes on the one before: where each is dropped
/// before the next is asked for, two lie there. Threads: that of the consumer.
class DeviceBatches {
 public:
  /// `batches` must outlive this object.
  DeviceBatches(Prefetcher& batches, at::Device device);

  /// Waits for the next batch and returns it. Begins to copy the one behind it, if that was read
  /// already. Throws as Prefetcher::next.
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
