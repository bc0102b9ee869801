#include "allocator.h"

#include <malloc.h>

namespace decent {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestThreshold = 32 << 20;  // larger tensors are mapped one by one in any case
  mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
}

}  // namespace decent
