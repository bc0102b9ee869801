#include "decent/optim/mix.h"

#include "decent/optim/bucket_kernels.h"

namespace decent {

void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing,
         const BucketKernels* kernels) {
  if (mixing.in_place) return or_cpu(kernels).in_pieces(numel, mixing.in_place);
  if (mixing.received == nullptr) return;
  or_cpu(kernels).with(scalar, [&]<typename T>(const TypedKernels<T, rules::All>& typed) {
    typed.mix(static_cast<T*>(x), static_cast<const T*>(mixing.received),
              static_cast<T>(mixing.self), static_cast<T>(mixing.other), numel);
  });
}

}  // namespace decent
