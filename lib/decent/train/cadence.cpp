#include "decent/train/cadence.h"

namespace decent {

bool Cadence::is_due(std::int64_t step, const Plan& plan) const {
  return is_on() && (step == plan.total_steps || recurs(step, plan));
}

bool Cadence::recurs(std::int64_t step, const Plan& plan) const {
  if (every_steps && step % *every_steps == 0) return true;
  const DataPosition position = plan.sampler->position(step);
  return every_epochs && position.consumed == 0 && position.epoch % *every_epochs == 0;
}

}  // namespace decent
