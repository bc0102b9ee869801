#pragma once
// Whether a run that came to its end has trained at all.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace decent {

/// Losses that say nothing by themselves of what a model has learned.
struct UntrainedLoss {
  double model = 0;  // of the model before any training; 0: not known
  /// Of an output of zeros, which knows nothing of its input: ln(classes), the mean square of the
  /// targets. Nothing where the model gives its loss itself.
  std::optional<double> zeros = {};
};

/// Looks out for a learning rate that is too high in a run whose losses stay finite: they rise far
/// above that of the untrained model, and at the end are no better than those of one that knows
/// nothing. What counts is the median of the last kMedianOf losses, as some batches are odd.
class LossWatch {
 public:
  static constexpr std::size_t kMedianOf = 10;
  /// Losses that rise less may do so by accident.
  static constexpr double kRise = 3;

  explicit LossWatch(const UntrainedLoss& untrained) : untrained_(untrained) {}

  /// The loss of one update, in their order. One that is not finite does not count.
  void saw(double loss);

  /// At the end; nothing where all is well, or where fewer than kMedianOf losses were seen.
  std::optional<std::string> warning(double lr) const;

 private:
  UntrainedLoss untrained_;
  std::vector<double> last_;  // the k-th loss is at k mod kMedianOf
  std::size_t seen_ = 0;
  double peak_ = 0;  // of the medians
};

}  // namespace decent
