// CUDA's runtime on the host, as far as staging and pinned batches need it: these names come before
// libcudart's, as they are the program's own. Device memory is the host's, and what is put on a
// stream happens at once. GPUs have contexts as CUDA's have: who calls something that needs one
// makes one on the calling thread's GPU, which is GPU 0 for a thread that has chosen none.

#include "stub_runtime.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace {

using decent::testing::kStubGpus;

std::array<std::atomic<bool>, kStubGpus> contexts;
std::atomic<int> spins = 0;
thread_local int current = 0;

cudaError_t in_context() {
  contexts[static_cast<std::size_t>(current)] = true;
  return cudaSuccess;
}

using Clock = std::chrono::steady_clock;

struct StubEvent {
  unsigned int flags;
  Clock::time_point recorded = {};
};

StubEvent* stub(cudaEvent_t event) { return reinterpret_cast<StubEvent*>(event); }

std::mutex calls_mutex;
std::vector<decent::testing::StubCall> calls;

void note(const char* what, cudaStream_t stream, cudaEvent_t event = nullptr) {
  const std::lock_guard lock(calls_mutex);
  calls.push_back({what, stream, event});
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  return *memory == nullptr ? cudaErrorMemoryAllocation : in_context();
}

}  // namespace

namespace decent::testing {

bool has_stub_context(int gpu) { return contexts[static_cast<std::size_t>(gpu)]; }
int stub_spins() { return spins; }
std::vector<StubCall> take_stub_calls() {
  const std::lock_guard lock(calls_mutex);
  return std::exchange(calls, {});
}

}  // namespace decent::testing

extern "C" {

int stub_has_context(int gpu) { return decent::testing::has_stub_context(gpu) ? 1 : 0; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kStubGpus;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current = device;
  return in_context();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Stub");
  properties->major = 9;
  properties->multiProcessorCount = 1;
  properties->totalGlobalMem = std::size_t{1} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int) {
  return allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return in_context();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  note("copy", stream);
  std::memcpy(to, from, bytes);
  return in_context();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  static std::atomic<std::uintptr_t> made = 0x1000;
  *stream = reinterpret_cast<cudaStream_t>(++made);
  return in_context();
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  note("wait", stream, event);
  return in_context();
}
cudaError_t cudaStreamQuery(cudaStream_t) { return in_context(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return in_context(); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  *event = reinterpret_cast<cudaEvent_t>(new StubEvent{.flags = flags});
  return in_context();
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }  // no other gets its address
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  note("record", stream, event);
  stub(event)->recorded = Clock::now();
  return in_context();
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (((stub(begin)->flags | stub(end)->flags) & cudaEventDisableTiming) != 0)
    return cudaErrorInvalidResourceHandle;
  *milliseconds =
      std::chrono::duration<float, std::milli>(stub(end)->recorded - stub(begin)->recorded).count();
  return in_context();
}
cudaError_t cudaEventQuery(cudaEvent_t) { return in_context(); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if ((stub(event)->flags & cudaEventBlockingSync) == 0) ++spins;
  return in_context();
}

}  // extern "C"
