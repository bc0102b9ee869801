#pragma once
// Autograd's notice that a gradient is complete.

#include <cstddef>
#include <functional>

#include "decent/parallel/named_tensors.h"

namespace decent {

/// While it lives, `ready(p)` is called in backward() once the gradient of parameter number p is
/// complete; on a GPU in autograd's thread of that device.
class GradientHooks {
 public:
  GradientHooks(const NamedTensors& parameters, std::function<void(std::size_t)> ready);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  NamedTensors parameters_;
};

/// Calls `action` when the backward() that is under way has computed all gradients.
void call_at_end_of_backward(std::function<void()> action);

}  // namespace decent
