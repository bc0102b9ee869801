#include "decent/parallel/exchange/modulo_grids.h"

#include <algorithm>
#include <array>

#include "decent/core/error.h"
#include "decent/core/option_table.h"

namespace decent {
namespace {

struct ModuloOptions {
  std::optional<double> modulo_range;  // R
};

constexpr std::array kModuloOptions = {Option<ModuloOptions>{
    "modulo_range",
    "How far apart the copies of a weight may be, in learning rates; null: follows from slices and "
    "topology",
    &ModuloOptions::modulo_range, above(0)}};

using Scales = std::vector<std::vector<LrScaleFrom>>;

const Schedule& checked(const Schedule& schedule) {
  if (!schedule)
    throw UserError(
        "a modulo exchange needs the schedule of the learning rate, which its grid follows");
  return schedule;
}

std::vector<ModuloEdge> edges_of(const std::vector<Phase>& phases) {
  std::vector<ModuloEdge> edges;
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase)
      edges.push_back(
          {.members = static_cast<int>(edge.ranks.size()), .self_weight = edge.self_weight});
  }
  return edges;
}

// A parameter that does not learn still mixes; it uses the grid of the fastest one.
Scales with_largest_for_zero(Scales scales) {
  double largest = 0;
  for (const auto& bucket : scales) {
    for (const LrScaleFrom& from : bucket) largest = std::max(largest, from.lr_scale);
  }
  for (auto& bucket : scales) {
    for (LrScaleFrom& from : bucket) {
      if (from.lr_scale == 0) from.lr_scale = largest;
    }
  }
  return scales;
}

Scales scales_of(const ExchangeSetup& setup) {
  if (setup.lr_scales.empty()) return Scales(setup.buckets.size(), {LrScaleFrom{}});
  return with_largest_for_zero(setup.lr_scales);
}

}  // namespace

std::vector<OptionKey> modulo_keys() { return keys_of(kModuloOptions); }

ModuloGrids::ModuloGrids(const ModuloFormat& format, const ExchangeSetup& setup,
                         std::int64_t phases)
    : format_(format),
      slices_(setup.options.slices),
      phases_(phases),
      edges_(edges_of(setup.all_phases.empty() ? setup.phases : setup.all_phases)),
      given_range_(options_from(setup.options.own, kModuloOptions).modulo_range),
      bound_(checked(setup.schedule), setup.options.slices),
      scales_(scales_of(setup)) {
  for (const at::Tensor& bucket : setup.buckets) numels_.push_back(bucket.numel());
  set_gamma(1);
}

void ModuloGrids::set_gamma(double gamma) {
  range_ = modulo_range(gamma, slices_, edges_);
  if (range_ && given_range_) range_ = given_range_;
}

ModuloLayout ModuloGrids::layout(std::size_t bucket, std::int64_t step) {
  const std::int64_t part = (step - 1) / (slices_ * phases_) % format_.parts;
  return modulo_layout(format_, slice_after_step(numels_[bucket], step, slices_), part,
                       grids_of(bucket, bound_.of_update(step + 1)));
}

// Adjacent parameters with the same grid share an entry, which usually covers the whole bucket.
std::vector<GridFrom> ModuloGrids::grids_of(std::size_t bucket, double bound) const {
  std::vector<GridFrom> grids;
  for (const LrScaleFrom& from : scales_[bucket]) {
    const int exponent = grid_exponent(*range_, bound * from.lr_scale, format_.bits);
    if (grids.empty() || grids.back().exponent != exponent)
      grids.push_back({.offset = from.offset, .exponent = exponent});
  }
  return grids;
}

}  // namespace decent
