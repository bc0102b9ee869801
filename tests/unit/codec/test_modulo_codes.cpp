// Codes and differences against their definition in whole numbers and in long double, on every
// instruction set and thread by thread as on a GPU.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "decent/codec/modulo_code.h"
#include "decent/codec/modulo_kernels.h"
#include "decent/cuda/modulo_table.h"

namespace decent {
namespace {

// ---- one element ----

TEST(Difference, IsTheNearestOfThoseThatTheCodesAllow) {
  for (int own = 0; own < 4; ++own) {
    for (int other = 0; other < 4; ++other) {
      const int apart = other - own;  // 0, +-1, +-2, +-3
      const int expected = apart == 3 ? -1 : apart == -3 ? 1 : std::abs(apart) == 2 ? 0 : apart;
      EXPECT_EQ(
          modulo_difference<2>(static_cast<std::uint8_t>(own), static_cast<std::uint8_t>(other)),
          expected);
    }
  }
}

template <int kBits>
void expect_opposite_ends() {
  for (int own = 0; own < 1 << kBits; ++own) {
    for (int other = 0; other < 1 << kBits; ++other) {
      const auto a = static_cast<std::uint8_t>(own);
      const auto b = static_cast<std::uint8_t>(other);
      EXPECT_EQ(modulo_difference<kBits>(a, b), -modulo_difference<kBits>(b, a));
      EXPECT_LT(std::abs(modulo_difference<kBits>(a, b)), 1 << (kBits - 1));
    }
  }
}

TEST(Difference, IsOppositeAtTheTwoEnds) {
  expect_opposite_ends<2>();
  expect_opposite_ends<4>();
  expect_opposite_ends<8>();
}

template <typename T>
class Codes : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Codes, ElementTypes);

// y = floor(x / s' + v) with the sum rounded to T, its code by the arithmetic of remainders.
template <typename T>
int code_by_definition(T x, int exponent, T dither, int bits) {
  const T y = std::floor(std::ldexp(x, -exponent) + dither);
  if (!std::isfinite(y)) return 0;
  const T remainder = std::fmod(y, std::ldexp(T(1), bits));
  return static_cast<int>(remainder < 0 ? remainder + std::ldexp(T(1), bits) : remainder);
}

TYPED_TEST(Codes, AreExactForEveryFiniteValue) {
  using T = TypeParam;
  const T most = std::numeric_limits<T>::max();
  const std::vector<T> values = {0,
                                 -T(0),
                                 T(0.5),
                                 T(-0.5),
                                 1,
                                 -1,
                                 T(1e-30),
                                 T(-1e-30),
                                 T(8388607.5),
                                 T(-8388607.5),
                                 T(1e20),
                                 T(-1e20),
                                 most,
                                 -most,
                                 std::numeric_limits<T>::denorm_min(),
                                 T(16777217),
                                 T(-16777215),
                                 T(0x1p31),
                                 T(-0x1p31),
                                 std::nextafter(T(0x1p31), T(0)),
                                 T(0x1p63),
                                 T(-0x1p63),
                                 std::nextafter(T(-0x1p63), T(0)),
                                 std::nextafter(T(0x1p63), most)};
  for (const int exponent : {-100, -10, 0, 3}) {
    for (const T dither : {T(0), T(0.5), T(0.618), T(1)}) {
      for (const T x : values) {
        const T inverse = std::ldexp(T(1), -exponent);
        EXPECT_EQ(modulo_code<2>(x, inverse, dither), code_by_definition(x, exponent, dither, 2))
            << x;
        EXPECT_EQ(modulo_code<8>(x, inverse, dither), code_by_definition(x, exponent, dither, 8))
            << x;
      }
    }
  }
}

TYPED_TEST(Codes, OfWhatIsNotFiniteAreZero) {
  using T = TypeParam;
  for (const T x : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                    -std::numeric_limits<T>::infinity()})
    EXPECT_EQ(modulo_code<4>(x, T(1), T(0.5)), 0);
}

// ---- messages ----

struct EmulatedGpu {
  template <typename T>
  static void encode(const ModuloEncoding<T>& encoding, Range) {
    run<T>(encoding, [](const auto& launch, unsigned block, unsigned thread) {
      cuda::encode_thread(launch, block, thread);
    });
  }

  template <typename T>
  static void mix(const ModuloMixing<T>& mixing, Range) {
    run<T>(mixing, [](const auto& launch, unsigned block, unsigned thread) {
      const int counted = cuda::mix_thread(launch, block, thread);
      if (launch.wrapped != nullptr) *launch.wrapped += counted;
    });
  }

 private:
  template <typename T, typename Work, typename Thread>
  static void run(const Work& work, const Thread& run_thread) {
    cuda::for_each_code_launch(work, [&](const cuda::CodeLaunch<T>& launch) {
      for (unsigned block = 0; block < launch.first_block[launch.count]; ++block) {
        for (unsigned thread = 0; thread < cuda::kCodeThreads; ++thread)
          run_thread(launch, block, thread);
      }
    });
  }
};

// Those of each instruction set, and the emulation.
std::vector<ModuloKernels> all_kernels() {
  std::vector<ModuloKernels> all = cpu_modulo_kernels_of_all_instruction_sets();
  all.push_back(ModuloKernels::made_of<EmulatedGpu>());
  return all;
}

// Copies that are some grid steps apart, as after some steps of training.
template <typename T>
struct Copies {
  Copies(std::int64_t n, int count) {
    std::mt19937 engine(7);
    std::normal_distribution<double> normal;
    copies.assign(static_cast<std::size_t>(count), std::vector<T>(static_cast<std::size_t>(n)));
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const double common = normal(engine);
      for (auto& copy : copies) copy[i] = static_cast<T>(common + 2e-3 * normal(engine));
    }
  }

  std::int64_t numel() const { return std::ssize(copies[0]); }

  // A slice that ends with the bucket, and three grids.
  ModuloLayout layout(const ModuloFormat& format) const {
    const std::int64_t n = numel();
    const std::vector<GridFrom> grids = {{0, -9}, {n / 96 * 16, -8}, {n / 64 * 16 + 16, -10}};
    return modulo_layout(format, {n / 320 * 32, n}, 3, grids);
  }

  std::vector<std::uint8_t> encoded(const TypedModuloKernels<T>& kernels, std::size_t copy,
                                    const ModuloLayout& layout, std::int64_t piece) const {
    std::vector<std::uint8_t> message(static_cast<std::size_t>(layout.bytes), 0xAA);
    for (std::int64_t begin = 0; begin < numel(); begin += piece) {
      kernels.encode({.x = copies[copy].data(),
                      .segments = layout.segments,
                      .dither = T(0.3),
                      .message = message.data()},
                     {begin, std::min(numel(), begin + piece)});
    }
    return message;
  }

  std::vector<std::vector<T>> copies;
};

// The code of an element, taken from a message bit by bit.
int code_in(const std::vector<std::uint8_t>& message, const CodeSegment& segment,
            std::int64_t element) {
  const std::int64_t bit = (element - segment.begin) * segment.bits;
  return message[static_cast<std::size_t>(segment.byte + bit / 8)] >> (bit % 8) &
         ((1 << segment.bits) - 1);
}

constexpr std::int64_t kLengths[] = {1, 5, 32, 33, 1000, 1024, 5000, 70'001};

template <typename T>
void for_each_case(const std::function<void(const Copies<T>&, const ModuloFormat&)>& check) {
  for (const std::int64_t n : kLengths) {
    const Copies<T> copies(n, 4);
    check(copies, kModulo2);
    check(copies, kModulo4);
  }
}

TYPED_TEST(Codes, StandInTheMessageAsTheLayoutSays) {
  using T = TypeParam;
  for_each_case<T>([](const Copies<T>& copies, const ModuloFormat& format) {
    const ModuloLayout layout = copies.layout(format);
    for (const ModuloKernels& kernels : all_kernels()) {
      const auto message = copies.encoded(kernels.of<T>(), 0, layout, copies.numel());
      for (const CodeSegment& segment : layout.segments) {
        for (std::int64_t i = segment.begin; i < segment.end; ++i)
          ASSERT_EQ(code_in(message, segment, i),
                    code_by_definition(copies.copies[0][static_cast<std::size_t>(i)],
                                       segment.exponent, T(0.3), segment.bits));
      }
    }
  });
}

// On the CPU a piece may be any thread's.
TYPED_TEST(Codes, AreTheSameInPieces) {
  using T = TypeParam;
  for_each_case<T>([](const Copies<T>& copies, const ModuloFormat& format) {
    const ModuloLayout layout = copies.layout(format);
    const auto& kernels = cpu_modulo_kernels().of<T>();
    EXPECT_EQ(copies.encoded(kernels, 0, layout, 4096 - 16),
              copies.encoded(kernels, 0, layout, copies.numel()));
  });
}

// All of one worker's mixing with three others.
template <typename T>
struct Mixed {
  std::vector<T> z;
  std::int64_t wrapped = 0;
};

template <typename T>
Mixed<T> mixed(const Copies<T>& copies, const ModuloFormat& format, std::size_t own, int others,
               const TypedModuloKernels<T>& kernels, std::int64_t piece) {
  const ModuloLayout layout = copies.layout(format);
  std::vector<std::uint8_t> received;
  for (int j = 1; j <= others; ++j) {
    const auto message =
        copies.encoded(kernels, (own + static_cast<std::size_t>(j)) % 4, layout, copies.numel());
    received.insert(received.end(), message.begin(), message.end());
  }
  std::vector<const std::uint8_t*> messages;
  for (int j = 0; j < others; ++j) messages.push_back(received.data() + j * layout.bytes);
  const auto sent = copies.encoded(kernels, own, layout, copies.numel());
  Mixed<T> result{.z = copies.copies[own]};
  for (std::int64_t begin = 0; begin < copies.numel(); begin += piece) {
    kernels.mix({.x = result.z.data(),
                 .segments = layout.segments,
                 .own = sent.data(),
                 .others = messages,
                 .weight = 0.3,
                 .bits = format.bits,
                 .wrapped = &result.wrapped},
                {begin, std::min(copies.numel(), begin + piece)});
  }
  return result;
}

template <typename T>
void expect_same_bits(const Mixed<T>& a, const Mixed<T>& b) {
  EXPECT_EQ(std::memcmp(a.z.data(), b.z.data(), a.z.size() * sizeof(T)), 0);
  EXPECT_EQ(a.wrapped, b.wrapped);
}

TYPED_TEST(Codes, MixToTheSameBitsEverywhereAndInPieces) {
  using T = TypeParam;
  for_each_case<T>([](const Copies<T>& copies, const ModuloFormat& format) {
    for (const int others : {1, 3}) {
      const auto& here = cpu_modulo_kernels().of<T>();
      const Mixed<T> whole = mixed(copies, format, 0, others, here, copies.numel());
      for (const ModuloKernels& kernels : all_kernels())
        expect_same_bits(mixed(copies, format, 0, others, kernels.of<T>(), copies.numel()), whole);
      expect_same_bits(mixed(copies, format, 0, others, here, 4096 - 16), whole);
    }
  });
}

// The fused multiply-add rounds once, and before it the factor weight s' is rounded.
TYPED_TEST(Codes, MixByTheFormula) {
  using T = TypeParam;
  const T epsilon = std::numeric_limits<T>::epsilon() / 2;
  for_each_case<T>([&](const Copies<T>& copies, const ModuloFormat& format) {
    const ModuloLayout layout = copies.layout(format);
    const Mixed<T> result =
        mixed(copies, format, 1, 3, cpu_modulo_kernels().of<T>(), copies.numel());
    std::vector<long double> expected(copies.copies[1].begin(), copies.copies[1].end());
    std::vector<long double> slack(expected.size(), 0);
    std::int64_t wrapped = 0;
    for (const CodeSegment& segment : layout.segments) {
      for (std::int64_t i = segment.begin; i < segment.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int half = 1 << (segment.bits - 1);
        int sum = 0;
        for (const std::size_t j : {2U, 3U, 0U}) {
          const auto code = [&](std::size_t copy) {
            return code_by_definition(copies.copies[copy][at], segment.exponent, T(0.3),
                                      segment.bits);
          };
          int d = ((code(j) - code(1) + half) % (2 * half) + 2 * half) % (2 * half) - half;
          if (d == -half) d = 0;
          sum += d;
          if (segment.bits == 8 && std::abs(d) >= 1 << (format.bits - 1)) ++wrapped;
        }
        const long double change = 0.3L * std::ldexp(1.0L, segment.exponent) * sum;
        expected[at] += change;
        slack[at] = epsilon * (std::abs(change) + std::abs(expected[at]));
      }
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_LE(std::abs(result.z[i] - expected[i]), slack[i]) << i;
    EXPECT_EQ(result.wrapped, wrapped);
  });
}

}  // namespace
}  // namespace decent
