#pragma once
// Mixed precision: while one of these lives, this thread's operators on one kind of device run in a
// lower precision where that is safe, as under torch.autocast.

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace decent {

class Autocast {
 public:
  /// at::kBFloat16 or at::kHalf.
  Autocast(at::DeviceType device, at::ScalarType dtype);
  /// Forgets the weights that were cast: the next step has others.
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType last_dtype_;
};

}  // namespace decent
