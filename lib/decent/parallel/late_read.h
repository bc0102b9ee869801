#pragma once
// Numbers of a device that the host reads later than it asks for them.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace decent {

/// Queues a copy of a few numbers from a GPU to the host behind the work that computes them, so
/// that the host goes on and reads them later without a wait. On the CPU it only keeps them. Not
/// thread-safe; start() and take() alternate.
class LateRead {
 public:
  /// `values` is float64 [n]; it may be released or written at once.
  void start(const at::Tensor& values);
  bool under_way() const { return host_.defined(); }
  /// The values [n], on the CPU. Waits until the GPU has copied them; valid until start().
  at::Tensor take();

 private:
  at::Tensor room_;  // pinned, as long as the longest values
  at::Tensor host_;  // the values under way
  std::optional<c10::Event> copied_;
};

}  // namespace decent
