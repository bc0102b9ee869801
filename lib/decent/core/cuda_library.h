#pragma once
// The shared library with all that needs CUDA, loaded when a GPU is first asked for: LibTorch's
// CUDA half costs 350 MB of memory and 0.15 s at start, which a run on the CPU does not pay.

namespace decent {

/// The address of `name` in libdecent_cuda.so, which is loaded on the first call and kept until the
/// process ends. Thread-safe. Throws UserError saying why it cannot be had: built without CUDA, not
/// found, of another build, refused by the system's loader.
void* cuda_symbol(const char* name);

}  // namespace decent
