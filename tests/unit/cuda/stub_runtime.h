#pragma once
// What the stub of CUDA's runtime (stub_runtime.cpp) has seen.

namespace decent::testing {

constexpr int kStubGpus = 2;

/// Whether somebody made a context on this GPU.
bool has_stub_context(int gpu);

/// How often a thread waited for an event by looking again and again (no cudaEventBlockingSync).
int stub_spins();

}  // namespace decent::testing
