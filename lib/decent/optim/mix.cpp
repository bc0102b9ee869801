#include "decent/optim/mix.h"

#include "decent/optim/bucket_kernels.h"

namespace decent {

void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing,
         const BucketKernels* kernels) {
  if (mixing.received != nullptr) or_cpu(kernels).mix(x, numel, scalar, mixing);
}

}  // namespace decent
