#pragma once
// How libdecent_cuda.so exports a function: everything else in it is hidden.

#define DECENT_CUDA_EXPORT __attribute__((visibility("default")))
