#include "decent/codec/modulo_kernels.h"
#include "decent/core/cuda_library.h"

namespace decent {

const ModuloKernels& cuda_modulo_kernels() {
  using Get = const ModuloKernels*();
  static const ModuloKernels* const kernels =
      reinterpret_cast<Get*>(cuda_symbol("decent_cuda_modulo_kernels"))();
  return *kernels;
}

}  // namespace decent
