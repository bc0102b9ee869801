#pragma once
// A bucket's update as launches of blocks of threads, and what one thread of them does. Plain C++
// with no call of CUDA: the tests run every thread of every block on the CPU and compare bits.
//
// A launch's arguments hold a table of parameters (at most 4 KiB, so that no copy to the device
// goes ahead of it); a block finds its parameter there and takes kBlockBytes of it.

#include <cstdint>
#include <span>

#include "decent/optim/bucket_update.h"
#include "decent/optim/element_choice.h"
#include "decent/optim/element_update.h"

namespace decent::cuda {

inline constexpr unsigned kThreads = 256;
inline constexpr std::int64_t kBlockBytes = 16 << 10;  // of x: 4 loads of 16 bytes a thread

template <typename T>
inline constexpr std::int64_t kBlockElements = kBlockBytes / static_cast<std::int64_t>(sizeof(T));

template <typename Coefficients>
struct Slice {
  std::int64_t offset;
  std::int64_t numel;
  const void* grad;  // null: mixed only
  Coefficients coefficients;
};

/// The arguments of one launch.
template <template <typename> class Coefficients, typename T>
struct Launch {
  using Entry = Slice<Coefficients<T>>;
  static constexpr int kSlices = (4096 - 80) / static_cast<int>(sizeof(Entry) + 4);

  T* x;
  const T* received;  // null: not mixed
  T* states[3];
  T self, other;
  int count;                          // of slices
  unsigned first_block[kSlices + 1];  // of each slice; the last is the number of blocks
  Entry slices[kSlices];
};

/// Calls submit(launch) for as many launches as the step needs.
template <template <typename> class Coefficients, typename T, typename Submit>
void for_each_launch(const BucketStep& step, std::span<const Coefficients<T>> coefficients,
                     const Submit& submit) {
  Launch<Coefficients, T> launch{};
  static_assert(sizeof(launch) <= 4096);
  launch.x = static_cast<T*>(step.x);
  launch.received = static_cast<const T*>(step.mixing.received);
  for (std::size_t s = 0; s < step.states.size(); ++s)
    launch.states[s] = static_cast<T*>(step.states[s]);
  launch.self = static_cast<T>(step.mixing.self);
  launch.other = static_cast<T>(step.mixing.other);
  for (std::size_t i = 0; i < step.slices.size(); ++i) {
    const BucketSlice& slice = step.slices[i];
    const bool idle = slice.grad == nullptr && launch.received == nullptr;
    if (slice.numel == 0 || idle) continue;
    launch.slices[launch.count] = {slice.offset, slice.numel, slice.grad, coefficients[i]};
    const auto blocks = (slice.numel + kBlockElements<T> - 1) / kBlockElements<T>;
    launch.first_block[launch.count + 1] =
        launch.first_block[launch.count] + static_cast<unsigned>(blocks);
    if (++launch.count == launch.kSlices) {
      submit(launch);
      launch.count = 0;
    }
  }
  if (launch.count > 0) submit(launch);
}

// 16 bytes, which a GPU's thread loads and stores at once.
template <typename T>
struct alignas(16) Vector {
  static constexpr int kWidth = 16 / sizeof(T);
  T lane[kWidth];
};

template <typename T>
DECENT_ELEMENT Vector<T> load(const T* array, std::int64_t number) {
  return reinterpret_cast<const Vector<T>*>(array)[number];
}

template <typename T>
DECENT_ELEMENT void store(T* array, std::int64_t number, const Vector<T>& values) {
  reinterpret_cast<Vector<T>*>(array)[number] = values;
}

/// One block's part of the arrays. Those that an update does not have are null.
template <typename T>
struct Part {
  T* x;
  const T* received;
  const T* grad;
  T* states[3];
  std::int64_t count;

  DECENT_ELEMENT bool aligned() const {
    std::uintptr_t all = reinterpret_cast<std::uintptr_t>(x) |
                         reinterpret_cast<std::uintptr_t>(received) |
                         reinterpret_cast<std::uintptr_t>(grad);
    for (T* state : states) all |= reinterpret_cast<std::uintptr_t>(state);
    return all % 16 == 0;
  }
};

/// What a kind of update reads beside x, by template arguments: states from kFirst to below kEnd
/// are read, those from kFirstWritten on written.
template <bool kMixes, bool kGrad, int kStates, int kFirstWritten>
struct Access {
  static constexpr bool kMix = kMixes;
  static constexpr bool kGradient = kGrad;
  static constexpr int kRead = kStates;
  static constexpr int kWritten = kFirstWritten;
};

template <typename A, typename T, typename Element>
DECENT_ELEMENT void sweep_vectors(const Part<T>& p, unsigned thread, const Element& element) {
  const std::int64_t vectors = p.count / Vector<T>::kWidth;
  for (std::int64_t k = thread; k < vectors; k += kThreads) {
    Vector<T> x = load(p.x, k), r{}, g{}, s[3]{};
    if constexpr (A::kMix) r = load(p.received, k);
    if constexpr (A::kGradient) g = load(p.grad, k);
    for (int i = 0; i < A::kRead; ++i) s[i] = load(p.states[i], k);
    for (int w = 0; w < Vector<T>::kWidth; ++w)
      element(x.lane[w], r.lane[w], g.lane[w], s[0].lane[w], s[1].lane[w], s[2].lane[w]);
    store(p.x, k, x);
    for (int i = A::kWritten; i < A::kRead; ++i) store(p.states[i], k, s[i]);
  }
}

template <typename A, typename T, typename Element>
DECENT_ELEMENT void sweep_elements(const Part<T>& p, std::int64_t begin, unsigned thread,
                                   const Element& element) {
  for (std::int64_t k = begin + thread; k < p.count; k += kThreads) {
    T s[3] = {};
    for (int i = 0; i < A::kRead; ++i) s[i] = p.states[i][k];
    element(p.x[k], A::kMix ? p.received[k] : T(0), A::kGradient ? p.grad[k] : T(0), s[0], s[1],
            s[2]);
    for (int i = A::kWritten; i < A::kRead; ++i) p.states[i][k] = s[i];
  }
}

/// This thread's elements of a part: element(x, received, gradient, states..) on each.
template <typename A, typename T, typename Element>
DECENT_ELEMENT void sweep(const Part<T>& part, unsigned thread, const Element& element) {
  std::int64_t done = 0;
  if (part.aligned()) {
    sweep_vectors<A>(part, thread, element);
    done = part.count / Vector<T>::kWidth * Vector<T>::kWidth;
  }
  sweep_elements<A>(part, done, thread, element);
}

template <typename T>
DECENT_ELEMENT void update_part(const Part<T>& part, const kernels::Sgd<T>& c, unsigned thread) {
  if (part.received != nullptr) {
    sweep<Access<true, true, 1, 0>>(part, thread, [&c](T& x, T r, T g, T& b, T&, T&) {
      kernels::sgd_element<true>(x, r, g, b, c);
    });
  } else {
    sweep<Access<false, true, 1, 0>>(part, thread, [&c](T& x, T r, T g, T& b, T&, T&) {
      kernels::sgd_element<false>(x, r, g, b, c);
    });
  }
}

template <typename T>
DECENT_ELEMENT void update_part(const Part<T>& part, const kernels::Adam<T>& c, unsigned thread) {
  kernels::choose(part.received != nullptr, c.gradient, [&](auto mix, auto gradient) {
    using Mix = decltype(mix);
    using Gradient = decltype(gradient);
    sweep<Access<Mix::value, true, 2, 0>>(part, thread, [&c](T& x, T r, T g, T& m, T& v, T&) {
      kernels::adam_element<Mix::value, Gradient::value>(x, r, g, m, v, c);
    });
  });
}

template <typename T>
DECENT_ELEMENT void update_part(const Part<T>& part, const kernels::AccumAdam<T>& c,
                                unsigned thread) {
  kernels::choose(part.received != nullptr, c.step.gradient, [&](auto mix, auto gradient) {
    using Mix = decltype(mix);
    using Gradient = decltype(gradient);
    if (c.ends_round) {
      sweep<Access<Mix::value, true, 3, 0>>(part, thread, [&c](T& x, T r, T g, T& m, T& v, T& a) {
        kernels::accum_adam_element<Mix::value, Gradient::value, true>(x, r, g, m, v, a, c);
      });
    } else {  // only the accumulated gradient is written
      sweep<Access<Mix::value, true, 3, 2>>(part, thread, [&c](T& x, T r, T g, T& m, T& v, T& a) {
        kernels::accum_adam_element<Mix::value, Gradient::value, false>(x, r, g, m, v, a, c);
      });
    }
  });
}

/// What thread number `thread` of block number `block` of a launch does.
template <template <typename> class Coefficients, typename T>
DECENT_ELEMENT void run_thread(const Launch<Coefficients, T>& launch, unsigned block,
                               unsigned thread) {
  int s = 0;
  while (launch.first_block[s + 1] <= block) ++s;
  const auto& slice = launch.slices[s];
  const std::int64_t begin = kBlockElements<T> * (block - launch.first_block[s]);
  const std::int64_t at = slice.offset + begin;
  const std::int64_t left = slice.numel - begin;
  Part<T> part{};
  part.x = launch.x + at;
  if (launch.received != nullptr) part.received = launch.received + at;
  part.count = left < kBlockElements<T> ? left : kBlockElements<T>;
  if (slice.grad == nullptr) {
    sweep<Access<true, false, 0, 0>>(part, thread, [&launch](T& x, T r, T, T&, T&, T&) {
      x = kernels::mixed<true>(x, r, launch.self, launch.other);
    });
    return;
  }
  part.grad = static_cast<const T*>(slice.grad) + begin;
  for (int i = 0; i < 3; ++i) {
    if (launch.states[i] != nullptr) part.states[i] = launch.states[i] + at;
  }
  update_part(part, slice.coefficients, thread);
}

}  // namespace decent::cuda
