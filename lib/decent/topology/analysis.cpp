#include "decent/topology/analysis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace decent {
namespace {

using Vector = std::vector<double>;

double& at(Vector& x, int rank) { return x[static_cast<std::size_t>(rank)]; }

// x <- ((1-gamma) I + gamma W) x, in time proportional to the size of the phase, not of its matrix.
void mix(const Phase& phase, double gamma, Vector& x) {
  for (const Edge& edge : phase) {
    const auto n = static_cast<double>(edge.ranks.size());
    if (n == 1) continue;
    double sum = 0;
    for (int rank : edge.ranks) sum += at(x, rank);
    const double other = (1 - edge.self_weight) / (n - 1);
    for (int rank : edge.ranks) {
      double& own = at(x, rank);
      own = (1 - gamma) * own + gamma * (edge.self_weight * own + other * (sum - own));
    }
  }
}

// Subtracts the mean of all workers.
void center(Vector& x) {
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  for (double& value : x) value -= mean;
}

double norm(const Vector& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

}  // namespace

// Power iteration with P' P on vectors with mean 0. P and its transpose keep the mean 0, because
// all mixing matrices are symmetric and doubly stochastic.
double spectral_gap(std::span<const Phase> phases, int world_size, double gamma) {
  constexpr int kMaxIterations = 2000;
  constexpr double kPrecision = 1e-13;
  if (world_size == 1) return 1.0;
  Vector x(static_cast<std::size_t>(world_size));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(1.0 + 7.3 * static_cast<double>(i * i));
  center(x);
  double square = 0;  // square of the singular value
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    const double length = norm(x);
    if (length == 0) return 1.0;
    for (double& value : x) value /= length;
    for (const Phase& phase : phases) mix(phase, gamma, x);
    for (std::size_t p = phases.size(); p-- > 0;) mix(phases[p], gamma, x);
    center(x);
    const double before = std::exchange(square, norm(x));
    if (std::abs(square - before) < kPrecision) break;
  }
  // Rounding leaves a mean of about 1e-16, which is not a singular value.
  return square < 1e-24 ? 1.0 : std::clamp(1 - std::sqrt(square), 0.0, 1.0);
}

std::optional<std::int64_t> steps_to_reach_all(std::span<const Phase> phases, int world_size) {
  const auto n = static_cast<std::size_t>(world_size);
  std::vector<std::vector<bool>> known(n, std::vector<bool>(n));
  for (std::size_t i = 0; i < n; ++i) known[i][i] = true;
  const auto all_known = [&] {
    return std::all_of(known.begin(), known.end(), [](const std::vector<bool>& row) {
      return std::find(row.begin(), row.end(), false) == row.end();
    });
  };
  if (all_known()) return 0;
  std::vector<std::vector<bool>> a_period_ago;
  for (std::int64_t step = 1;; ++step) {
    const auto phase = static_cast<std::size_t>(step - 1) % phases.size();
    const auto before = known;
    for (const Edge& edge : phases[phase]) {
      if (edge.self_weight == 1.0) continue;
      std::vector<bool> together(n);
      for (int rank : edge.ranks) {
        for (std::size_t j = 0; j < n; ++j) {
          if (before[static_cast<std::size_t>(rank)][j]) together[j] = true;
        }
      }
      for (int rank : edge.ranks) known[static_cast<std::size_t>(rank)] = together;
    }
    if (all_known()) return step;
    // If a whole period changed nothing, later ones will not either.
    if (phase + 1 == phases.size()) {
      if (a_period_ago == known) return std::nullopt;
      a_period_ago = known;
    }
  }
}

}  // namespace decent
