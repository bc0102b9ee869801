#pragma once
// What the stub of CUDA's runtime (stub_runtime.cpp) has seen.

#include <string>
#include <vector>

namespace decent::testing {

constexpr int kStubGpus = 2;

/// Whether somebody made a context on this GPU.
bool has_stub_context(int gpu);

/// How often a thread waited for an event by looking again and again (no cudaEventBlockingSync).
int stub_spins();

/// Something that was put on a stream: "copy", "record" (of an event), "wait" (for an event).
struct StubCall {
  std::string what;
  const void* stream;
  const void* event;
};
/// In their order, since the last call of this function. Threads: at most one puts things on
/// streams.
std::vector<StubCall> take_stub_calls();

}  // namespace decent::testing
