#pragma once
// A bucket's update as launches of blocks of threads, and the work of one thread. Plain C++ with no
// call of CUDA: the tests run every thread of every block on the CPU and compare bits.
//
// A launch's arguments hold a table of parameters; they take at most 4 KiB, so that no copy to the
// device is needed first. A block finds its parameter there and takes kBlockBytes of it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "decent/optim/bucket_update.h"
#include "decent/optim/rules/rule.h"

namespace decent::cuda {

inline constexpr unsigned kThreads = 256;
// Bytes of x per block: one 16-byte load per thread. On an H100, AdamW then reaches 98% of a copy's
// bandwidth; with four loads per thread, 95%.
inline constexpr std::int64_t kBlockBytes = 4 << 10;

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
template <class Rule, typename T>
struct Launch {
  using Entry = Slice<rules::Coefficients<Rule, T>>;
  static constexpr int kMaxSlices = (4096 - 96) / static_cast<int>(sizeof(Entry) + 4);

  T* x;
  const T* received;  // null: not mixed
  T* states[rules::kStateCount<Rule>];
  T self;  // of the mixing
  T other;
  double grad_scale;
  const double* device_scale;            // null: 1; see BucketStep
  int count;                             // of slices
  unsigned first_block[kMaxSlices + 1];  // of each slice; the last is the number of blocks
  Entry slices[kMaxSlices];
};

/// Calls submit(launch) for as many launches as the step needs.
template <class Rule, typename T, typename Submit>
void for_each_launch(const BucketStep& step,
                     std::span<const rules::Coefficients<Rule, T>> coefficients,
                     const Submit& submit) {
  Launch<Rule, T> launch{};
  static_assert(sizeof(launch) <= 4096);
  launch.x = static_cast<T*>(step.x);
  launch.received = static_cast<const T*>(step.mixing.received);
  for (std::size_t s = 0; s < step.states.size(); ++s)
    launch.states[s] = static_cast<T*>(step.states[s]);
  launch.self = static_cast<T>(step.mixing.self);
  launch.other = static_cast<T>(step.mixing.other);
  launch.grad_scale = step.grad_scale;
  launch.device_scale = step.device_scale;
  for (std::size_t i = 0; i < step.slices.size(); ++i) {
    const BucketSlice& slice = step.slices[i];
    const bool idle = slice.grad == nullptr && launch.received == nullptr;
    if (slice.numel == 0 || idle) continue;
    launch.slices[launch.count] = {slice.offset, slice.numel, slice.grad, coefficients[i]};
    const auto blocks = (slice.numel + kBlockElements<T> - 1) / kBlockElements<T>;
    launch.first_block[launch.count + 1] =
        launch.first_block[launch.count] + static_cast<unsigned>(blocks);
    if (++launch.count == launch.kMaxSlices) {
      submit(launch);
      launch.count = 0;
    }
  }
  if (launch.count > 0) submit(launch);
}

/// The number of the slice that has this block. `first_block` ascends, from 0 to the number of
/// blocks.
DECENT_ELEMENT int slice_of(const unsigned* first_block, int count, unsigned block) {
  int slice = 0;
  for (int end = count; end - slice > 1;) {
    const int middle = (slice + end) / 2;
    if (first_block[middle] <= block) {
      slice = middle;
    } else {
      end = middle;
    }
  }
  return slice;
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

// Room for a value for each state; arrays of length 0 are not allowed.
template <typename Value, std::size_t kStates>
struct ForEachState {
  Value of[kStates == 0 ? 1 : kStates];
};

/// One block's part of the arrays. Arrays that an update does not use are null.
template <typename T, std::size_t kStates>
struct Part {
  T* x;
  const T* received;
  const T* grad;
  ForEachState<T*, kStates> states;
  std::int64_t count;

  DECENT_ELEMENT bool aligned() const {
    std::uintptr_t all = reinterpret_cast<std::uintptr_t>(x) |
                         reinterpret_cast<std::uintptr_t>(received) |
                         reinterpret_cast<std::uintptr_t>(grad);
    for (T* state : states.of) all |= reinterpret_cast<std::uintptr_t>(state);
    return all % 16 == 0;
  }
};

// An update of one rule's elements; its states from kFirstWritten on are written.
template <class Rule, bool kMixes, bool kWhole>
struct Update {
  static constexpr bool kMix = kMixes;
  static constexpr bool kGradient = true;
  static constexpr std::size_t kFirstWritten = kWhole ? 0 : rules::kStatesOfWhole<Rule>;

  template <typename T, typename... States>
  static DECENT_ELEMENT void element(T& x, T received, T grad, const rules::Scales<T>& scales,
                                     const rules::Coefficients<Rule, T>& c, States&... states) {
    rules::update_element<Rule, kMix, kWhole>(x, received, grad, scales, c, states...);
  }
};

struct NoCoefficients {};

struct Mix {
  static constexpr bool kMix = true;
  static constexpr bool kGradient = false;
  static constexpr std::size_t kFirstWritten = 0;

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T received, T, const rules::Scales<T>& scales,
                                     const NoCoefficients&) {
    x = rules::mixed(x, received, scales.self, scales.other);
  }
};

// Loads and stores of a part, 16 bytes or one element at a time. Places of states are template
// arguments, so that all values stay in registers.
template <class Work, typename T, typename Coefficients, std::size_t... S>
DECENT_ELEMENT void sweep_vectors(const Part<T, sizeof...(S)>& p, unsigned thread,
                                  const rules::Scales<T>& scales, const Coefficients& c,
                                  std::index_sequence<S...>) {
  const std::int64_t vectors = p.count / Vector<T>::kWidth;
  for (std::int64_t k = thread; k < vectors; k += kThreads) {
    Vector<T> x = load(p.x, k), r{}, g{};
    if constexpr (Work::kMix) r = load(p.received, k);
    if constexpr (Work::kGradient) g = load(p.grad, k);
    ForEachState<Vector<T>, sizeof...(S)> s{};
    ((s.of[S] = load(p.states.of[S], k)), ...);
    for (int w = 0; w < Vector<T>::kWidth; ++w) {
      Work::element(x.lane[w], r.lane[w], g.lane[w], scales, c, s.of[S].lane[w]...);
    }
    store(p.x, k, x);
    ((S >= Work::kFirstWritten ? store(p.states.of[S], k, s.of[S]) : void()), ...);
  }
}

template <class Work, typename T, typename Coefficients, std::size_t... S>
DECENT_ELEMENT void sweep_elements(const Part<T, sizeof...(S)>& p, std::int64_t begin,
                                   unsigned thread, const rules::Scales<T>& scales,
                                   const Coefficients& c, std::index_sequence<S...>) {
  for (std::int64_t k = begin + thread; k < p.count; k += kThreads) {
    Work::element(p.x[k], Work::kMix ? p.received[k] : T(0), Work::kGradient ? p.grad[k] : T(0),
                  scales, c, p.states.of[S][k]...);
  }
}

/// This thread's elements of a part.
template <class Work, typename T, std::size_t kStates, typename Coefficients>
DECENT_ELEMENT void sweep(const Part<T, kStates>& part, unsigned thread,
                          const rules::Scales<T>& scales, const Coefficients& c) {
  constexpr std::make_index_sequence<kStates> states;
  std::int64_t done = 0;
  if (part.aligned()) {
    sweep_vectors<Work>(part, thread, scales, c, states);
    done = part.count / Vector<T>::kWidth * Vector<T>::kWidth;
  }
  sweep_elements<Work>(part, done, thread, scales, c, states);
}

template <class Rule, bool kMix, typename T, std::size_t kStates>
DECENT_ELEMENT void update_part(const Part<T, kStates>& part, unsigned thread,
                                const rules::Scales<T>& scales,
                                const rules::Coefficients<Rule, T>& c) {
  if constexpr (rules::HasTwoForms<Rule>) {
    if (!c.whole) return sweep<Update<Rule, kMix, false>>(part, thread, scales, c);
  }
  sweep<Update<Rule, kMix, true>>(part, thread, scales, c);
}

/// The work of thread number `thread` of block number `block` of a launch.
template <class Rule, typename T>
DECENT_ELEMENT void run_thread(const Launch<Rule, T>& launch, unsigned block, unsigned thread) {
  const double factor = launch.device_scale != nullptr ? *launch.device_scale : 1.0;
  if (factor != factor) return;
  const rules::Scales<T> scales{launch.self, launch.other,
                                static_cast<T>(launch.grad_scale * factor)};
  const int s = slice_of(launch.first_block, launch.count, block);
  const auto& slice = launch.slices[s];
  const std::int64_t begin = kBlockElements<T> * (block - launch.first_block[s]);
  const std::int64_t at = slice.offset + begin;
  const std::int64_t left = slice.numel - begin;
  const std::int64_t count = left < kBlockElements<T> ? left : kBlockElements<T>;
  const T* received = launch.received != nullptr ? launch.received + at : nullptr;
  if (slice.grad == nullptr)
    return sweep<Mix>(Part<T, 0>{launch.x + at, received, nullptr, {}, count}, thread, scales,
                      NoCoefficients());
  Part<T, rules::kStateCount<Rule>> part{
      launch.x + at, received, static_cast<const T*>(slice.grad) + begin, {}, count};
  for (std::size_t i = 0; i < rules::kStateCount<Rule>; ++i)
    part.states.of[i] = launch.states[i] + at;
  if (received != nullptr) {
    update_part<Rule, true>(part, thread, scales, slice.coefficients);
  } else {
    update_part<Rule, false>(part, thread, scales, slice.coefficients);
  }
}

}  // namespace decent::cuda
