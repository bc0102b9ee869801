#include "decent/model/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

namespace decent {
namespace {

void set(bool matrices, bool convolutions, bool benchmark) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(matrices);
  context.setAllowTF32CuDNN(convolutions);
  context.setBenchmarkCuDNN(benchmark);
}

}  // namespace

void set_fast_math(bool on) { set(on, on, on); }

ExactMath::ExactMath()
    : matrices_(at::globalContext().allowTF32CuBLAS()),
      convolutions_(at::globalContext().allowTF32CuDNN()),
      benchmark_(at::globalContext().benchmarkCuDNN()) {
  set_fast_math(false);
}

ExactMath::~ExactMath() { set(matrices_, convolutions_, benchmark_); }

Autocast::Autocast(at::DeviceType device, at::ScalarType dtype)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      last_dtype_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, last_dtype_);
}

}  // namespace decent
