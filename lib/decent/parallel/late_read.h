#pragma once
// Numbers of a device that the host reads later than they are asked for.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace decent {

/// Copies a few numbers from a GPU to the host behind what computes them, so that the host can go
/// on and look at them when the GPU has long been there. On the CPU they are simply kept. Not
/// thread-safe; start() and take() alternate.
class LateRead {
 public:
  /// `values` is float64 [n]; it may be released or written at once.
  void start(const at::Tensor& values);
  bool under_way() const { return host_.defined(); }
  /// The values [n], on the CPU. Waits for the GPU to have come there; valid until start().
  at::Tensor take();

 private:
  at::Tensor room_;  // pinned, as long as the longest values
  at::Tensor host_;  // of what is under way
  std::optional<c10::Event> copied_;
};

}  // namespace decent
