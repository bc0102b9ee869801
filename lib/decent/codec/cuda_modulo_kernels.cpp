#include "decent/codec/modulo_kernels.h"
#include "decent/core/cuda_library.h"

namespace decent {

const ModuloKernels& cuda_modulo_kernels() {
  static const ModuloKernels* const kernels =
      cuda_function<const ModuloKernels*()>("decent_cuda_modulo_kernels")();
  return *kernels;
}

}  // namespace decent
