#pragma once
// Mixed precision on the CPU: while one of these lives, this thread's operators run in a lower
// precision where that is safe, as under torch.autocast.

#include <c10/core/ScalarType.h>

namespace decent {

class Autocast {
 public:
  /// at::kBFloat16 or at::kHalf.
  explicit Autocast(at::ScalarType dtype);
  /// Forgets the weights that were cast: the next step has others.
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool was_enabled_;
  at::ScalarType last_dtype_;
};

}  // namespace decent
