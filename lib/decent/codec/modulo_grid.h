#pragma once
// The grid of the modulo exchange (Moniqua, arXiv 2002.11787, with a grid that follows the learning
// rate): the spacing of the codes. It is the same on every worker, because it depends only on the
// schedule and the topology.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace decent {

/// The widths of codes: b bits a weight, except in one of the M parts of a slice, which take turns:
/// that part gets 8 bits, which recover what b bits have lost.
struct ModuloFormat {
  int bits;            // b: 2 or 4
  std::int64_t parts;  // M
};
inline constexpr ModuloFormat kModulo2{.bits = 2, .parts = 16};
inline constexpr ModuloFormat kModulo4{.bits = 4, .parts = 8};

/// What the grid depends on in an edge.
struct ModuloEdge {
  int members = 1;
  double self_weight = 1;
};

/// R: how many learning rates apart two copies may be, max(4, 2 slices) / sqrt(q), where q is gamma
/// times the smallest n W_ij over edges of n > 1 members and a self-weight below 1. nullopt if
/// gamma is 0 or there is no such edge: then nothing needs to be sent.
std::optional<double> modulo_range(double gamma, std::int64_t slices,
                                   std::span<const ModuloEdge> edges);

/// L of update t = 2, 3, ..: the largest learning rate of steps max(1, t - 1 - 8 max(slices, 2)) to
/// t - 1, because a falling rate shrinks the grid faster than copies agree; at least 2^-12 of the
/// highest of steps 1 to t - 1. Not thread-safe.
class LearningRateBound {
 public:
  using Schedule = std::function<double(std::int64_t step)>;

  LearningRateBound(Schedule schedule, std::int64_t slices);
  double of_update(std::int64_t t);

 private:
  Schedule schedule_;
  std::int64_t reach_;
  std::int64_t highest_until_ = 0;  // highest_ is that of steps 1 .. highest_until_
  double highest_ = 0;
  std::int64_t update_ = 0;  // for which bound_ was computed last
  double bound_ = 0;
};

/// log2 of the distance s' between neighbouring codes: ceil(log2(2 R L / 2^bits)), within [-100,
/// 120]. It is a power of two, so that scaling by it rounds nothing.
int grid_exponent(double range, double bound, int bits);

/// v of update t: the number that every worker adds to each x / s' before rounding down. A multiple
/// of the golden ratio with 2 bits, 1/2 with 4.
double modulo_dither(const ModuloFormat& format, std::int64_t t);

}  // namespace decent
