#pragma once
// Errors of CUDA calls as exceptions.

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace decent::cuda {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
}

}  // namespace decent::cuda
