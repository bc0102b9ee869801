#pragma once
// Which codes a bucket has after which step, the same on every worker: a function of topology,
// schedule, factors of the learning rate and gamma.

#include <cstdint>
#include <optional>
#include <vector>

#include "decent/codec/modulo_layout.h"
#include "decent/parallel/exchange/exchange.h"

namespace decent {

/// The options of modulo exchanges.
std::vector<OptionKey> modulo_keys();

class ModuloGrids {
 public:
  /// Throws UserError without a schedule.
  ModuloGrids(const ModuloFormat& format, const ExchangeSetup& setup, std::int64_t phases);

  /// R depends on gamma. With 0 there is nothing to send.
  void set_gamma(double gamma);

  /// Whether any worker ever mixes with another one.
  bool any() const { return range_.has_value(); }

  /// The layout of the codes of x^(step), with which update step + 1 mixes.
  ModuloLayout layout(std::size_t bucket, std::int64_t step);

 private:
  std::vector<GridFrom> grids_of(std::size_t bucket, double bound) const;

  ModuloFormat format_;
  std::int64_t slices_;
  std::int64_t phases_;
  std::vector<ModuloEdge> edges_;      // of all workers, in all phases
  std::optional<double> given_range_;  // modulo_range
  std::optional<double> range_;        // R
  LearningRateBound bound_;
  std::vector<std::int64_t> numels_;              // by bucket
  std::vector<std::vector<LrScaleFrom>> scales_;  // by bucket; none of them is 0
};

}  // namespace decent
