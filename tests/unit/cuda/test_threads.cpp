// The library for GPUs with a stub of CUDA's runtime: which GPU the threads of a worker use that
// has GPU 1. In a process of its own, as contexts stay.

#include <ATen/ops/empty.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "../support/child_process.h"
#include "../support/workers.h"
#include "decent/comm/cuda.h"
#include "decent/core/cuda_library.h"
#include "decent/data/device_batch.h"
#include "decent/data/prefetcher.h"
#include "decent/task/device.h"
#include "stub_runtime.h"

namespace decent {
namespace {

using testing::in_child;

const at::Device kGpu1(at::kCUDA, 1);

at::Tensor on_gpu(std::vector<float> values) {
  at::Tensor tensor = at::empty({std::ssize(values)}, at::TensorOptions(kGpu1));
  std::memcpy(tensor.data_ptr(), values.data(), tensor.nbytes());  // it is the host's memory
  return tensor;
}

std::vector<float> values_of(const at::Tensor& tensor) {
  const auto* const data = static_cast<const float*>(tensor.const_data_ptr());
  return {data, data + tensor.numel()};
}

std::string contexts() {
  return std::string(testing::has_stub_context(0) ? "GPU 0 " : "") +
         (testing::has_stub_context(1) ? "GPU 1" : "");
}

// Without which the tests below could not fail.
TEST(StubOfCuda, GivesAContextOnGpu0ToAThreadThatChoosesNone) {
  EXPECT_EQ(in_child([] {
              EXPECT_EQ(find_cuda_devices().count, testing::kStubGpus);
              use_cuda_device(1);
              const std::string before = contexts();
              std::thread([] { cudaStreamQuery(nullptr); }).join();
              return before + ", " + contexts();
            }),
            "GPU 1, GPU 0 GPU 1");
}

TEST(Threads, OfStagingUseTheGpuOfTheWorker) {
  EXPECT_EQ(in_child([]() -> std::string {
              cuda_symbol("decent_cuda_build_id");
              testing::run_workers(2, [](const testing::Worker& host) {
                use_cuda_device(1);
                const auto world = stage_cuda(host);
                const auto rank = static_cast<float>(world->rank());
                for (int round = 0; round < 3; ++round) {
                  const at::Tensor sum = on_gpu({1 + rank, 10});
                  const at::Tensor out = on_gpu({rank}), in = on_gpu({-1});
                  const Pending summed = world->all_reduce_sum(sum);
                  const Pending sent = world->exchange(out, in, 1 - world->rank(), 0);
                  std::thread([&] { sent->wait_on_host(); }).join();  // as for a trace
                  std::thread([&] { EXPECT_TRUE(sent->done()); }).join();
                  summed->wait();
                  sent->wait();
                  EXPECT_EQ(values_of(sum), (std::vector<float>{3, 20}));
                  EXPECT_EQ(values_of(in), std::vector<float>{1 - rank});
                }
                world->barrier();
                return testing::Nothing();
              });
              return contexts() + ", waited awake " + std::to_string(testing::stub_spins()) +
                     " times" + (::testing::Test::HasFailure() ? ", wrong values" : "");
            }),
            "GPU 1, waited awake 0 times");
}

TEST(Threads, ThatReadAheadUseTheGpuOfTheWorker) {
  EXPECT_EQ(in_child([]() -> std::string {
              cuda_symbol("decent_cuda_build_id");
              use_cuda_device(1);
              Prefetcher batches(
                  [](std::int64_t) {
                    const std::vector<std::int64_t> shape = {3};
                    return Batch{{empty_batch(DType::float32, 2, shape, host_memory_for(kGpu1))}};
                  },
                  0, 20, 4, 2, thread_start_for(kGpu1));
              // Memory that was copied from is free again once an event has passed, for which the
              // allocator looks when a thread asks for more.
              while (!batches.done()) DeviceBatch(batches.next(), kGpu1).there();
              return contexts();
            }),
            "GPU 1");
}

// What batch `number` of one field holds.
Batch numbered(std::int64_t number) {
  const std::vector<std::int64_t> shape = {3};
  Batch batch{{empty_batch(DType::float32, 2, shape, host_memory_for(kGpu1))}};
  std::fill_n(batch.fields[0].mutable_data_ptr<float>(), 6, static_cast<float>(number));
  return batch;
}

// The calls of all streams in their order. The stream that computes is the default one, a null
// pointer; events are letters, but for `before`.
std::string told(const std::vector<testing::StubCall>& calls, const void* before) {
  std::map<const void*, std::string> events = {{before, "that of before"}};
  std::set<const void*> streams;
  std::string text;
  for (const auto& [what, stream, event] : calls) {
    if (stream != nullptr) streams.insert(stream);
    const std::string letter(1, static_cast<char>('a' + events.size() - 1));
    text += what + (event == nullptr ? "" : " " + events.emplace(event, letter).first->second) +
            (stream == nullptr ? " on the stream that computes; " : " on the side; ");
  }
  return streams.size() > 1 ? "several streams on the side" : text;
}

// Batches of which each was read when it is needed.
std::string copies_ahead() {
  cuda_symbol("decent_cuda_build_id");
  use_cuda_device(1);
  std::atomic<std::int64_t> begun = -1;  // by one thread, which has read all before it
  const auto read = [&](std::int64_t number) {
    begun = number;
    return numbered(number);
  };
  Prefetcher read_ahead(read, 0, 20, 4, 1, thread_start_for(kGpu1));
  DeviceBatches batches(read_ahead, kGpu1);
  std::set<const void*> places;
  std::set<std::string> orders;
  const void* copied = nullptr;  // the event behind the last copy
  for (int number = 0; !batches.done(); ++number) {
    while (begun < std::min(number + 2, 19)) std::this_thread::yield();
    testing::take_stub_calls();
    const auto batch = batches.next();
    EXPECT_EQ(values_of(batch->there().fields[0])[5], static_cast<float>(number));
    const auto calls = testing::take_stub_calls();
    if (number > 0 && number < 17) orders.insert(told(calls, copied));
    const auto recorded =
        std::ranges::find(calls.rbegin(), calls.rend(), "record", &testing::StubCall::what);
    copied = recorded == calls.rend() ? nullptr : recorded->event;
    places.insert(batch->there().fields[0].data_ptr());
  }
  EXPECT_EQ(places.size(), 2U);  // the memory of no more than two batches
  std::string text = contexts();
  for (const std::string& order : orders) text += "\n" + order;
  return text;
}

TEST(DeviceBatches, CopyTheNextOneBesideTheComputation) {
  EXPECT_EQ(in_child(copies_ahead),
            "GPU 1\n"
            "record a on the stream that computes; wait a on the side; copy on the side; "
            "record b on the side; wait that of before on the stream that computes; ");
}

TEST(TimedEvents, TellHowLongTheGpuTook) {
  EXPECT_EQ(in_child([]() -> std::string {
              cuda_symbol("decent_cuda_build_id");
              use_cuda_device(1);
              const auto world = stage_cuda(make_single_worker());
              if (world->timed_event(at::empty({1})) != nullptr) return "one for the CPU";
              const auto begin = world->timed_event(on_gpu({1})),
                         end = world->timed_event(on_gpu({1}));
              begin->record();
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
              end->record();
              if (!end->passed()) return "under way";
              const double seconds = end->seconds_since(*begin);
              return seconds >= 0.02 && seconds < 10 ? contexts() : std::to_string(seconds);
            }),
            "GPU 1");
}

}  // namespace
}  // namespace decent
