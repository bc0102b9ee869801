#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>

namespace decent::fake_gpu {
namespace {

constexpr int kNobodyChose = -1;
constexpr int kMostDevices = 16;

std::atomic<int> chosen = kNobodyChose;
std::atomic<std::int64_t> allocated = 0;
std::atomic<std::int64_t> peak = 0;
std::mutex broken_mutex;
std::string broken;

thread_local c10::DeviceIndex thread_device = 0;
thread_local std::array<c10::StreamId, kMostDevices> thread_streams{};

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::atoi(text);
}

// Fails for a thread that uses a device that the process did not choose, because on a GPU it would
// create a context there.
void check_thread(const char* what) {
  if (chosen == kNobodyChose || chosen == thread_device) return;
  throw std::logic_error(std::string("fake GPU: ") + what + " in a thread whose device is " +
                         std::to_string(thread_device) + "; the process chose device " +
                         std::to_string(chosen));
}

// What a tensor's memory keeps alive: the host's memory, and its share of the counted bytes.
struct Kept {
  c10::Storage memory;
  std::int64_t bytes;
};

void release(void* context) {
  auto* const kept = static_cast<Kept*>(context);
  allocated -= kept->bytes;
  delete kept;
}

class DeviceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    return device_memory(c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                                      c10::GetCPUAllocator(), /*resizable=*/true));
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
};

// Knows which pointers are pinned.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    check_thread("pinned memory is asked for");
    auto* const kept =
        new Block{this, c10::GetCPUAllocator()->allocate(std::max<std::size_t>(bytes, 1))};
    void* const data = kept->memory.get();
    const std::lock_guard lock(mutex_);
    blocks_[data] = bytes;
    return {data, kept, &PinnedAllocator::forget, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
  bool holds(const void* data) const {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(data);
    if (after == blocks_.begin()) return false;
    const auto& [begin, bytes] = *--after;
    return static_cast<const char*>(data) < static_cast<const char*>(begin) + bytes;
  }

 private:
  struct Block {
    PinnedAllocator* owner;
    c10::DataPtr memory;
  };
  static void forget(void* context) {
    auto* const block = static_cast<Block*>(context);
    {
      const std::lock_guard lock(block->owner->mutex_);
      block->owner->blocks_.erase(block->memory.get());
    }
    delete block;
  }

  mutable std::mutex mutex_;
  std::map<const void*, std::size_t> blocks_;
};

PinnedAllocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;  // outlives all tensors
  return *allocator;
}

class Hooks : public at::CUDAHooksInterface {
 public:
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return device_count(); }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  c10::DeviceIndex current_device() const override { return thread_device; }
  c10::DeviceIndex getCurrentDevice() const override { return thread_device; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<at::CPUGeneratorImpl>();
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* data) const override { return pinned_allocator().holds(data); }
  c10::Device getDeviceFromPtr(void*) const override { return fake_gpu::current_device(); }
  void deviceSynchronize(c10::DeviceIndex) const override { check_device(); }
};

// All work is done when its call returns, so streams are numbers and events are empty.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = c10::DeviceType::CUDA;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return static_type; }
  c10::Device getDevice() const override { return current_device(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    thread_device = device.index();
    return before;
  }
  void setDevice(c10::Device device) const override { thread_device = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    thread_device = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device,
                       thread_streams[static_cast<std::size_t>(device.index())]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    static std::atomic<c10::StreamId> made = 0;
    return c10::Stream(c10::Stream::UNSAFE, device, ++made);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    thread_streams[static_cast<std::size_t>(stream.device_index())] = stream.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    check_device();
  }
  void block(void*, const c10::Stream&) const override { check_device(); }
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { check_device(); }
  void synchronizeEvent(void*) const override { check_device(); }
  void synchronizeDevice(c10::DeviceIndex) const override { check_device(); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

}  // namespace

int device_count() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return number_of("DECENT_FAKE_GPUS", 1);
  const std::string_view list = visible;
  return list.empty() ? 0 : static_cast<int>(std::count(list.begin(), list.end(), ',')) + 1;
}

c10::Device current_device() { return {c10::kCUDA, thread_device}; }

void choose_device(int index) {
  thread_device = static_cast<c10::DeviceIndex>(index);
  chosen = index;
}

const at::Generator& generator() {
  static const auto* const its = new at::Generator(at::make_generator<at::CPUGeneratorImpl>());
  return *its;
}

c10::DataPtr device_memory(const c10::Storage& memory) {
  check_device();
  check_thread("memory is asked for");
  const auto bytes = static_cast<std::int64_t>(memory.nbytes());
  const std::int64_t limit = memory_limit();
  TORCH_CHECK_WITH(OutOfMemoryError, limit == 0 || allocated + bytes <= limit,
                   "CUDA out of memory. Tried to allocate ", bytes, " bytes. GPU ",
                   static_cast<int>(thread_device), " has a total capacity of ", limit, " bytes.");
  allocated += bytes;
  std::int64_t before = peak;
  while (before < allocated && !peak.compare_exchange_weak(before, allocated)) {
  }
  auto* const kept = new Kept{memory, bytes};
  return {kept->memory.mutable_data(), kept, &release, current_device()};
}

std::int64_t memory_limit() {
  const char* text = std::getenv("DECENT_FAKE_GPU_MB");
  return text == nullptr ? 0 : static_cast<std::int64_t>(std::atof(text) * (1 << 20));
}

std::int64_t take_peak(bool restart) { return restart ? peak.exchange(allocated) : peak.load(); }

void note_wait(const std::string& operation) {
  const char* file = std::getenv("DECENT_FAKE_GPU_WAITS");
  if (file != nullptr) std::ofstream(file, std::ios::app) << operation << "\n";
}

void break_device(const std::string& error) {
  const std::lock_guard lock(broken_mutex);
  broken = error;
}

void check_device() {
  const std::lock_guard lock(broken_mutex);
  constexpr int kErrorAssert = 710;  // cudaErrorAssert
  if (!broken.empty())
    throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kErrorAssert, broken);
}

namespace {

struct Registration {
  Registration() {
    static DeviceAllocator allocator;
    c10::SetAllocator(c10::kCUDA, &allocator);
  }
} const registration;

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

}  // namespace
}  // namespace decent::fake_gpu

namespace at {

using decent::fake_gpu::Hooks;
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", Hooks)

}  // namespace at
