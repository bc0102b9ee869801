// Which build this library belongs to; core/cuda_library.cpp compares it with the program's.

#include "decent/core/version.h"
#include "decent/cuda/exports.h"

extern "C" DECENT_CUDA_EXPORT const char* decent_cuda_build_id() {
  return decent::build_id().data();  // a string literal
}
