#pragma once
// Functions of one element, which loops of the CPU and kernels of GPUs share.

#ifdef __CUDACC__
#define DECENT_ELEMENT __host__ __device__ __forceinline__
#else
#define DECENT_ELEMENT inline __attribute__((always_inline))
#endif
