#include "decent/optim/loss_scaler.h"

#include <cmath>
#include <string>

#include "decent/core/error.h"

namespace decent {
namespace {

void check(bool valid, const char* name, double value, const char* range) {
  if (valid) return;
  throw UserError("loss scale: " + std::string(name) + " is " + std::to_string(value) +
                  ": it must be " + range);
}

}  // namespace

LossScaler::LossScaler(const LossScalerOptions& options)
    : options_(options), scale_(static_cast<float>(options.init_scale)) {
  check(scale_ > 0 && std::isfinite(scale_), "init_scale", options.init_scale, "> 0 and a float32");
  check(options.growth_factor > 1, "growth_factor", options.growth_factor, "> 1");
  check(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor",
        options.backoff_factor, "in (0, 1)");
  check(options.growth_interval >= 1, "growth_interval",
        static_cast<double>(options.growth_interval), ">= 1");
}

void LossScaler::update(bool overflow) {
  if (overflow) {
    scale_ = static_cast<float>(scale_ * options_.backoff_factor);
    growth_tracker_ = 0;
    return;
  }
  if (++growth_tracker_ < options_.growth_interval) return;
  const auto larger = static_cast<float>(scale_ * options_.growth_factor);
  if (std::isfinite(larger)) scale_ = larger;
  growth_tracker_ = 0;
}

void LossScaler::restore(double scale, std::int64_t growth_tracker) {
  scale_ = static_cast<float>(scale);
  growth_tracker_ = growth_tracker;
}

}  // namespace decent
