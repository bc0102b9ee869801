#include "decent/parallel/training_options.h"

#include "decent/core/error.h"

namespace decent {

void TrainingOptions::check() const {
  if (update == nullptr)
    throw UserError(
        "options.training.update is not set: see make_update, e.g. make_update(\"adamw\")");
  if (!schedule)
    throw UserError(
        "options.training.schedule is not set: see make_schedule, e.g. constant_lr(1e-3)");
  if (!(clip.norm >= 0))
    throw UserError("options.training.clip.norm is " + std::to_string(clip.norm) +
                    ": it must be >= 0 (0 is off)");
  if (!(weight_decay >= 0))
    throw UserError("options.training.weight_decay is " + std::to_string(weight_decay) +
                    ": it must be >= 0");
  if (ema && !(*ema >= 0 && *ema < 1))
    throw UserError("options.training.ema is " + std::to_string(*ema) + ": it must be in [0, 1)");
}

ParameterSettings TrainingOptions::settings_of(const std::string& name,
                                               const at::Tensor& parameter) const {
  if (settings) return settings(name, parameter);
  return {.weight_decay = parameter.dim() >= 2 ? weight_decay : 0.0};
}

}  // namespace decent
