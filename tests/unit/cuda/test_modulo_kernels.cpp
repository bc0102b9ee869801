// Codes on a GPU: the bits of the CPU.

#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>

#include <random>

#include "decent/codec/modulo_kernels.h"
#include "gpu_workers.h"

namespace decent {
namespace {

constexpr std::int64_t kNumel = 100'003;

template <typename T>
constexpr at::ScalarType kDtype = std::is_same_v<T, double> ? at::kDouble : at::kFloat;

template <typename T>
const TypedModuloKernels<T>& kernels_on(at::Device device) {
  return (device.is_cuda() ? cuda_modulo_kernels() : cpu_modulo_kernels()).of<T>();
}

template <typename T>
at::Tensor copy_of_model(unsigned number) {
  std::mt19937 common(1), own(2 + number);
  std::normal_distribution<double> weight, difference;  // each keeps a number for its next call
  std::vector<T> values(kNumel);
  for (T& value : values) value = static_cast<T>(weight(common) + 2e-3 * difference(own));
  return at::from_blob(values.data(), {kNumel}, kDtype<T>).clone();
}

ModuloLayout layout_of(const ModuloFormat& format) {
  const std::vector<GridFrom> grids = {{0, -9}, {32'000, -8}, {70'016, -10}};
  return modulo_layout(format, {32, kNumel}, 5, grids);
}

template <typename T>
at::Tensor message_of(const at::Tensor& x, const ModuloLayout& layout) {
  const at::Tensor message = at::full({layout.bytes}, 0xAA, x.options().dtype(at::kByte));
  kernels_on<T>(x.device())
      .encode({.x = x.const_data_ptr<T>(),
               .segments = layout.segments,
               .dither = T(0.3),
               .message = message.mutable_data_ptr<std::uint8_t>()},
              {0, kNumel});
  return message;
}

struct Results {
  at::Tensor own, others, z, wrapped;
};

// A message, and mixing with two others.
template <typename T>
Results results_on(at::Device device, const ModuloFormat& format) {
  const ModuloLayout layout = layout_of(format);
  const at::Tensor x = copy_of_model<T>(0).to(device);
  const at::Tensor own = message_of<T>(x, layout);
  const at::Tensor others = at::zeros({2, layout.bytes}, own.options());
  for (unsigned j = 0; j < 2; ++j)
    others.select(0, j).copy_(message_of<T>(copy_of_model<T>(1 + j).to(device), layout));
  const auto* const first = others.const_data_ptr<std::uint8_t>();
  const std::array messages = {first, first + layout.bytes};
  const at::Tensor wrapped = at::zeros({1}, x.options().dtype(at::kLong));
  kernels_on<T>(device).mix({.x = x.mutable_data_ptr<T>(),
                             .segments = layout.segments,
                             .own = own.const_data_ptr<std::uint8_t>(),
                             .others = messages,
                             .weight = 0.3,
                             .bits = format.bits,
                             .wrapped = wrapped.mutable_data_ptr<std::int64_t>()},
                            {0, kNumel});
  return {own.cpu(), others.cpu(), x.cpu(), wrapped.cpu()};
}

template <typename T>
void expect_bits_of_cpu(const ModuloFormat& format) {
  const Results gpu = results_on<T>(at::kCUDA, format);
  const Results cpu = results_on<T>(at::kCPU, format);
  EXPECT_TRUE(at::equal(gpu.own, cpu.own));
  EXPECT_TRUE(at::equal(gpu.others, cpu.others));
  EXPECT_TRUE(at::equal(gpu.z, cpu.z));
  EXPECT_TRUE(at::equal(gpu.wrapped, cpu.wrapped));
  EXPECT_GT(cpu.wrapped.item<std::int64_t>(), 0);
}

TEST(ModuloKernels, GiveTheBitsOfTheCpu) {
  testing::run_gpu_workers(1, BackendRequest::automatic, [](const testing::GpuWorker&) {
    for (const ModuloFormat& format : {kModulo2, kModulo4}) {
      expect_bits_of_cpu<float>(format);
      expect_bits_of_cpu<double>(format);
    }
  });
}

}  // namespace
}  // namespace decent
