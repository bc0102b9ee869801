#include "decent/parallel/decentralized_options.h"

#include "decent/core/error.h"

namespace decent {

void check_gamma(double gamma) {
  if (!(gamma >= 0 && gamma <= 1))
    throw UserError("gamma is " + std::to_string(gamma) + ": it must be in [0, 1]");
}

void DecentralizedOptions::check() const {
  training.check();
  check_gamma(gamma);
  exchange.check();
  if (exchange.needs_near_copies() && !training.update->steps_bounded_by_lr()) {
    throw UserError(
        "a modulo exchange needs an optimizer whose steps are bounded by the learning rate, which "
        "its grid follows: adam, adamw, lion, accum_adam or accum_adamw, not sgd or rmsprop (an "
        "update of your own says so by steps_bounded_by_lr())");
  }
}

}  // namespace decent
