#include "decent/parallel/mean.h"

#include <ATen/Functions.h>

namespace decent {
namespace {

// Float32 with the last bit set wherever it is not exact ("rounding to odd"): a second rounding, to
// a type that is at least two bits narrower, then comes out as a single one would.
at::Tensor rounded_to_odd(const at::Tensor& values) {
  const at::Tensor floats = values.to(at::kFloat);
  const at::Tensor error = values.sub(floats.to(at::kDouble));
  const at::Tensor bits = floats.view(at::kInt);
  const at::Tensor outwards = error.gt(0).eq(bits.ge(0));  // the exact value is further from zero
  const at::Tensor step = outwards.to(at::kInt).mul_(2).sub_(1);
  const at::Tensor even = bits.bitwise_and(1).eq(0);
  const at::Tensor moves = error.ne(0).logical_and_(error.isfinite()).logical_and_(even);
  return at::where(moves, bits.add(step), bits).view(at::kFloat);
}

}  // namespace

void copy_rounded_once(const at::Tensor& target, const at::Tensor& values) {
  const bool directly = target.element_size() >= 4;
  target.copy_(directly ? values : rounded_to_odd(values.contiguous()));
}

}  // namespace decent
