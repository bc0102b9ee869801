#pragma once
// Warns at the end of a run that learned nothing because its learning rate was too high.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace decent {

/// Losses of models that have learned nothing, for comparison.
struct UntrainedLoss {
  double model = 0;  // of the model before any training; 0: not known
  /// The loss of an output of zeros, which ignores its input: ln(classes), or the mean square of
  /// the targets. nullopt if the model returns its loss itself.
  std::optional<double> zeros = {};
};

/// Detects a learning rate that is too high in a run whose losses stay finite: the loss rises far
/// above that of the untrained model, and at the end is no better than that of a model that knows
/// nothing. It uses the median of the last kMedianOf losses, because single batches vary.
class LossWatch {
 public:
  static constexpr std::size_t kMedianOf = 10;
  /// The factor by which the loss must rise; smaller rises may be accidental.
  static constexpr double kRiseFactor = 3;

  explicit LossWatch(const UntrainedLoss& untrained) : untrained_(untrained) {}

  /// The loss of the next update. A loss that is not finite is ignored.
  void saw(double loss);

  /// The warning at the end of the run; nullopt if all is well, or after fewer than kMedianOf
  /// losses. `lr`: see lr_text.
  std::optional<std::string> warning(const std::string& lr) const;

 private:
  UntrainedLoss untrained_;
  std::vector<double> last_;  // the k-th loss is at k mod kMedianOf
  std::size_t seen_ = 0;
  double peak_ = 0;  // of the medians
};

}  // namespace decent
