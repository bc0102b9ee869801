#pragma once
// Mixed precision: while an Autocast lives, this thread's operators on one kind of device run in a
// lower precision where that is safe, as under torch.autocast.

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace decent {

class Autocast {
 public:
  /// at::kBFloat16 or at::kHalf.
  Autocast(at::DeviceType device, at::ScalarType dtype);
  /// Drops the cast weights, because the next step has new ones.
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType last_dtype_;
};

}  // namespace decent
