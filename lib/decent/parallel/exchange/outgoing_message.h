#pragma once
// The message of a bucket, if it is not sent from the bucket itself.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>

#include "decent/comm/communicator.h"

namespace decent {

/// A message that is made in pieces, by any threads, in memory that neighbours may read in place.
class OutgoingMessage {
 public:
  /// The next message gets new memory.
  void drop_memory() { memory_.reset(); }

  /// Begins the message of x^(step), with `bytes`, on the device of `like`. Waits until nobody
  /// reads the last message any more.
  void begin(Communicator& communicator, std::int64_t step, std::int64_t bytes,
             const at::Tensor& like);

  /// uint8 [bytes].
  at::Tensor bytes() const { return memory_.narrow(0, 0, bytes_); }
  std::uint8_t* data() const { return memory_.mutable_data_ptr<std::uint8_t>(); }

  /// Counts elements of the bucket whose part of the message is made.
  void made(std::int64_t elements) { made_ += elements; }
  bool complete(std::int64_t step, std::int64_t elements) const {
    return step_ == step && made_ == elements;
  }
  /// The message was sent: complete() is false until the next begin().
  void sent() { step_ = 0; }

 private:
  at::Tensor memory_;
  std::int64_t bytes_ = 0;
  std::int64_t step_ = 0;  // 0: none
  std::atomic<std::int64_t> made_ = 0;
};

}  // namespace decent
