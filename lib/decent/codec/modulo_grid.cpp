#include "decent/codec/modulo_grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace decent {
namespace {

constexpr double kGoldenRatio = 0.6180339887498949;
constexpr double kMinShareOfHighest = 0x1p-12;

// n W_ij, which is 1 if all members have equal weights.
double evenness(const ModuloEdge& edge) {
  const double n = edge.members;
  if (edge.self_weight == 1 / n) return 1;
  return n * (1 - edge.self_weight) / (n - 1);
}

}  // namespace

std::optional<double> modulo_range(double gamma, std::int64_t slices,
                                   std::span<const ModuloEdge> edges) {
  std::optional<double> least;
  for (const ModuloEdge& edge : edges) {
    if (edge.members < 2 || edge.self_weight >= 1) continue;
    least = std::min(least.value_or(evenness(edge)), evenness(edge));
  }
  if (!least || gamma == 0) return std::nullopt;
  return static_cast<double>(std::max<std::int64_t>(4, 2 * slices)) / std::sqrt(gamma * *least);
}

LearningRateBound::LearningRateBound(Schedule schedule, std::int64_t slices)
    : schedule_(std::move(schedule)), reach_(8 * std::max<std::int64_t>(slices, 2)) {}

double LearningRateBound::of_update(std::int64_t t) {
  if (t == update_) return bound_;
  if (t <= highest_until_) highest_until_ = 0, highest_ = 0;  // resumed from an earlier step
  while (highest_until_ < t - 1) highest_ = std::max(highest_, schedule_(++highest_until_));
  bound_ = kMinShareOfHighest * highest_;
  for (std::int64_t step = std::max<std::int64_t>(1, t - 1 - reach_); step < t; ++step)
    bound_ = std::max(bound_, schedule_(step));
  update_ = t;
  return bound_;
}

int grid_exponent(double range, double bound, int bits) {
  constexpr int kMinExponent = -100;
  constexpr int kMaxExponent = 120;
  const double distance = std::ldexp(range * bound, 1 - bits);
  if (!(distance > 0)) return kMinExponent;
  if (!std::isfinite(distance)) return kMaxExponent;
  int exponent = 0;
  const double fraction = std::frexp(distance, &exponent);  // in [1/2, 1)
  return std::clamp(fraction == 0.5 ? exponent - 1 : exponent, kMinExponent, kMaxExponent);
}

double modulo_dither(const ModuloFormat& format, std::int64_t t) {
  if (format.bits != 2) return 0.5;
  const double multiple = kGoldenRatio * static_cast<double>(t);
  return multiple - std::floor(multiple);
}

}  // namespace decent
