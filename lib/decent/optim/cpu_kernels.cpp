// The kernels of the CPU: pieces of parameters, spread over threads. The result of a piece depends
// neither on the thread that takes it nor on the instruction set, and so the whole result depends
// on neither.

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "decent/core/instruction_sets.h"
#include "decent/optim/bucket_kernels.h"

namespace decent {
namespace {

using rules::Coefficients;

// ---- inner loops: each runs over contiguous elements ----

struct MixLoop {
  template <typename T>
  static DECENT_ELEMENT void run(T* x, const T* received, T self, T other, std::int64_t n) {
#pragma GCC ivdep  // arrays do not overlap, here and below
    for (std::int64_t i = 0; i < n; ++i) x[i] = rules::mixed(x[i], received[i], self, other);
  }
};

// Lanes that do not depend on one another. The compiler keeps them in vector registers, as many in
// each as the processor's instruction set allows.
struct SquaresLoop {
  template <typename T>
  static DECENT_ELEMENT double run(const T* g, std::int64_t n) {
    constexpr std::int64_t kLanes = 16;
    double lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) {
        const double value = static_cast<double>(g[i + l]);
        lanes[l] += value * value;
      }
    }
    for (std::int64_t l = 0; i < n; ++i, ++l) {
      const double value = static_cast<double>(g[i]);
      lanes[l] += value * value;
    }
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  }
};

// The arrays of one slice from one element on.
template <typename T, std::size_t kStates>
struct Piece {
  T* x = nullptr;
  const T* received = nullptr;  // null: not mixed
  const T* grad = nullptr;      // null: mixed only
  std::array<T*, kStates> states{};
  std::int64_t numel = 0;
};

// Decisions that are the same for all elements are made outside of the loops, so that each loop
// vectorises. The loops copy their arguments, because the compiler then knows that no store can
// change them.
template <class Rule>
struct UpdateLoop {
  template <typename T, typename Arrays>
  static DECENT_ELEMENT void run(const Arrays& piece, const rules::Scales<T>& scales,
                                 const Coefficients<Rule, T>& coefficients) {
    if (piece.received != nullptr) {
      choose_form<true>(piece, scales, coefficients);
    } else {
      choose_form<false>(piece, scales, coefficients);
    }
  }

 private:
  template <bool kMix, typename T, typename Arrays>
  static DECENT_ELEMENT void choose_form(const Arrays& piece, const rules::Scales<T>& scales,
                                         const Coefficients<Rule, T>& coefficients) {
    constexpr std::make_index_sequence<rules::kStateCount<Rule>> states;
    if constexpr (rules::HasTwoForms<Rule>) {
      if (!coefficients.whole) return loop<kMix, false>(piece, scales, coefficients, states);
    }
    loop<kMix, true>(piece, scales, coefficients, states);
  }

  template <bool kMix, bool kWhole, typename T, typename Arrays, std::size_t... S>
  static DECENT_ELEMENT void loop(const Arrays& piece, const rules::Scales<T>& scales,
                                  const Coefficients<Rule, T>& coefficients,
                                  std::index_sequence<S...>) {
    const Arrays p = piece;
    const rules::Scales<T> k = scales;
    const Coefficients<Rule, T> c = coefficients;
    constexpr std::size_t kFirstWritten = kWhole ? 0 : rules::kStatesOfWhole<Rule>;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < p.numel; ++i) {
      T x = p.x[i];
      T states[] = {p.states[S][i]...};  // in registers, so that stores force no new loads
      rules::update_element<Rule, kMix, kWhole>(x, kMix ? p.received[i] : T(0), p.grad[i], k, c,
                                                states[S]...);
      p.x[i] = x;
      ((S >= kFirstWritten ? void(p.states[S][i] = states[S]) : void()), ...);
    }
  }
};

// ---- threads ----

// Elements that a thread takes at a time: enough to amortise the call, few enough to balance.
constexpr std::int64_t kChunkElements = 1 << 15;
// The same if the pass does other work on x, too. Memory is idle at every change of work, so these
// are as long as the second level of cache allows.
constexpr std::int64_t kPieceElements = 1 << 16;
// The same if the other work only reads what was written and copies it to memory that it does not
// read: the stores of the copy are still on their way while the next piece is loaded.
constexpr std::int64_t kWrittenPieceElements = 1 << 13;

struct Chunk {
  std::size_t slice;
  std::int64_t begin;  // from the start of the slice
  std::int64_t numel;
  std::int64_t padding;  // elements behind it that belong to no parameter
};

std::vector<Chunk> split_into_chunks(std::span<const BucketSlice> slices,
                                     std::int64_t most = kChunkElements) {
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    for (std::int64_t begin = 0; begin < slices[s].numel; begin += most) {
      chunks.push_back({.slice = s,
                        .begin = begin,
                        .numel = std::min(most, slices[s].numel - begin),
                        .padding = 0});
    }
  }
  return chunks;
}

// Pieces that together cover the whole bucket.
std::vector<Chunk> split_into_pieces(const BucketStep& step) {
  std::vector<Chunk> pieces =
      split_into_chunks(step.slices, step.mixing.in_place ? kPieceElements : kWrittenPieceElements);
  std::int64_t next = step.numel;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    const std::int64_t begin = step.slices[piece->slice].offset + piece->begin;
    piece->padding = next - (begin + piece->numel);
    next = begin;
  }
  return pieces;
}

template <class Rule, typename T>
Piece<T, rules::kStateCount<Rule>> piece_of(const BucketStep& step, const Chunk& chunk) {
  const BucketSlice& slice = step.slices[chunk.slice];
  const std::int64_t at = slice.offset + chunk.begin;
  Piece<T, rules::kStateCount<Rule>> piece;
  piece.x = static_cast<T*>(step.x) + at;
  piece.numel = chunk.numel;
  const void* received = step.mixing.received;
  if (received != nullptr) piece.received = static_cast<const T*>(received) + at;
  if (slice.grad != nullptr) piece.grad = static_cast<const T*>(slice.grad) + chunk.begin;
  for (std::size_t s = 0; s < piece.states.size(); ++s)
    piece.states[s] = static_cast<T*>(step.states[s]) + at;
  return piece;
}

template <class InstructionSet>
struct Cpu {
  template <class Rule, typename T>
  static void update(const BucketStep& step, std::span<const Coefficients<Rule, T>> coefficients) {
    const double factor = step.device_scale != nullptr ? *step.device_scale : 1.0;
    const rules::Scales<T> scales{static_cast<T>(step.mixing.self),
                                  static_cast<T>(step.mixing.other),
                                  static_cast<T>(step.grad_scale * factor)};
    const bool with_others = step.mixing.in_place || step.written;
    const std::vector<Chunk> chunks =
        with_others ? split_into_pieces(step) : split_into_chunks(step.slices);
#pragma omp parallel for schedule(static) if (chunks.size() > 1)
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Chunk& chunk = chunks[i];
      const std::int64_t begin = step.slices[chunk.slice].offset + chunk.begin;
      const std::int64_t end = begin + chunk.numel;
      if (step.mixing.in_place) step.mixing.in_place(begin, end);
      if (!std::isnan(factor)) update_chunk<Rule>(step, chunk, scales, coefficients[chunk.slice]);
      if (step.written) step.written(begin, end + chunk.padding);
    }
  }

  template <typename T>
  static void mix(T* x, const T* received, T self, T other, std::int64_t numel) {
#pragma omp parallel for schedule(static) if (numel > kChunkElements)
    for (std::int64_t begin = 0; begin < numel; begin += kChunkElements) {
      InstructionSet::template run<MixLoop>(x + begin, received + begin, self, other,
                                            std::min(kChunkElements, numel - begin));
    }
  }

  template <typename T>
  static std::int64_t partial_sums(std::span<const BucketSlice> slices) {
    std::int64_t chunks = 0;
    for (const BucketSlice& slice : slices)
      chunks += (slice.numel + kChunkElements - 1) / kChunkElements;
    return chunks;
  }

  template <typename T>
  static void add_up_squares(std::span<const BucketSlice> slices, double* sums) {
    const std::vector<Chunk> chunks = split_into_chunks(slices);
#pragma omp parallel for schedule(static) if (chunks.size() > 1)
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const auto* grad = static_cast<const T*>(slices[chunks[i].slice].grad);
      sums[i] = grad == nullptr ? 0
                                : InstructionSet::template run<SquaresLoop>(grad + chunks[i].begin,
                                                                            chunks[i].numel);
    }
  }

  static void clip(const Clipping& clipping) { clipping.run(); }

  static void in_pieces(std::int64_t numel, const PieceWork& work) {
#pragma omp parallel for schedule(static) if (numel > kChunkElements)
    for (std::int64_t begin = 0; begin < numel; begin += kChunkElements)
      work(begin, std::min(numel, begin + kChunkElements));
  }

 private:
  template <class Rule, typename T>
  static void update_chunk(const BucketStep& step, const Chunk& chunk,
                           const rules::Scales<T>& scales,
                           const Coefficients<Rule, T>& coefficients) {
    const auto piece = piece_of<Rule, T>(step, chunk);
    if (piece.grad != nullptr) {
      InstructionSet::template run<UpdateLoop<Rule>>(piece, scales, coefficients);
    } else if (piece.received != nullptr) {
      InstructionSet::template run<MixLoop>(piece.x, piece.received, scales.self, scales.other,
                                            piece.numel);
    }
  }
};

}  // namespace

const std::vector<BucketKernels>& cpu_kernels_of_all_instruction_sets() {
  static const auto all = for_instruction_sets_here<BucketKernels>(
      []<class InstructionSet>() { return BucketKernels::made_of<Cpu<InstructionSet>>(); });
  return all;
}

const BucketKernels& cpu_kernels() { return cpu_kernels_of_all_instruction_sets().back(); }

}  // namespace decent
