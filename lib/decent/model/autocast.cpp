#include "decent/model/autocast.h"

#include <ATen/autocast_mode.h>

namespace decent {

Autocast::Autocast(at::ScalarType dtype)
    : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
      last_dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
  at::autocast::set_autocast_dtype(at::kCPU, last_dtype_);
}

}  // namespace decent
