#include "decent/task/loss_watch.h"

#include <algorithm>
#include <cmath>

#include "decent/core/text.h"

namespace decent {
namespace {

// A model that has only learned how frequent each class is may reach this part of the zeros' loss.
constexpr double kHardlyBetter = 0.9;

// The upper median, if the number is even.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void LossWatch::saw(double loss) {
  if (!std::isfinite(loss)) return;
  if (last_.size() < kMedianOf) {
    last_.push_back(loss);
  } else {
    last_[seen_ % kMedianOf] = loss;
  }
  ++seen_;
  if (last_.size() == kMedianOf) peak_ = std::max(peak_, median_of(last_));
}

std::optional<std::string> LossWatch::warning(const std::string& lr) const {
  if (last_.size() < kMedianOf) return std::nullopt;
  const double end = median_of(last_);
  const double before = std::max(untrained_.model, untrained_.zeros.value_or(0));
  const double useless =
      untrained_.zeros ? kHardlyBetter * *untrained_.zeros : kRiseFactor * untrained_.model;
  if (!(before > 0) || peak_ <= kRiseFactor * before || end < useless) return std::nullopt;
  const std::string worth =
      untrained_.zeros ? "; a model that gives zeros has " + short_number_text(*untrained_.zeros)
                       : "";
  return "the loss rose from " + short_number_text(untrained_.model) + " before training to " +
         short_number_text(peak_) + " and ended at " + short_number_text(end) + worth +
         ".\noptimizer.lr " + lr + " is probably too high: try a tenth of it or less";
}

}  // namespace decent
