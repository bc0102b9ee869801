#include "decent/parallel/decentralized_options.h"

#include "decent/core/error.h"

namespace decent {

void check_gamma(double gamma) {
  if (!(gamma >= 0 && gamma <= 1))
    throw UserError("gamma is " + std::to_string(gamma) + ": it must be in [0, 1]");
}

void check_exchange(std::int64_t slices, const std::optional<double>& modulo_range) {
  if (slices < 1)
    throw UserError("slices is " + std::to_string(slices) + ": it must be >= 1 (1 is off)");
  if (modulo_range && !(*modulo_range > 0))
    throw UserError("modulo_range is " + std::to_string(*modulo_range) +
                    ": it must be greater than 0");
}

void DecentralizedOptions::check() const {
  training_options(*this).check();
  check_gamma(gamma);
  check_exchange(slices, modulo_range);
  if (exchange.needs_near_copies() && !update->steps_bounded_by_lr()) {
    throw UserError(
        "a modulo exchange needs an optimizer whose steps are bounded by the learning rate, which "
        "its grid follows: adam, adamw, lion, accum_adam or accum_adamw, not sgd or rmsprop (an "
        "update of your own says so by steps_bounded_by_lr())");
  }
}

}  // namespace decent
