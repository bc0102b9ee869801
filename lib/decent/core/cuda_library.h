#pragma once
// Loads the shared library with everything that needs CUDA when a GPU is first requested.
// LibTorch's CUDA half costs 350 MB of memory and 0.15 s at start, which a run on the CPU thus does
// not pay.
//
// LibTorch checks once whether it has a CUDA half and keeps the answer: at at::manual_seed(),
// at::globalContext().hasCUDA(), the first pinned tensor or the first backward(). The library must
// be loaded before any of these. comm/device_choice.h does that at the start of a run, and
// use_cuda_device() (comm/cuda.h) throws an error if it was too late.

namespace decent {

/// The address of `name` in libdecent_cuda.so, which is loaded on the first call and kept until the
/// process ends. It is the file that DECENT_CUDA_LIBRARY names; without this variable the one
/// beside the program, else the one in ../lib from there, else the one that the system's loader
/// finds. Thread-safe. If it cannot be loaded, every call throws the same UserError with the
/// reason: built without CUDA, not found, of another build, refused by the system's loader.
void* cuda_symbol(const char* name);

/// `name` as the function that a header declares:
///     cuda_function<decltype(decent_cuda_f)>("decent_cuda_f")(..)
template <typename Function>
Function* cuda_function(const char* name) {
  return reinterpret_cast<Function*>(cuda_symbol(name));
}

}  // namespace decent
