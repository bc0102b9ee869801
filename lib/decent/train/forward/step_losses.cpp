#include "decent/train/forward/step_losses.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace decent {

double StepLoss::mean() const {
  double sum = 0;
  for (const double loss : micro_batches) sum += loss / static_cast<double>(micro_batches.size());
  return sum;
}

bool StepLoss::is_finite() const {
  return std::ranges::all_of(micro_batches, [](double loss) { return std::isfinite(loss); });
}

void StepLosses::end_early(std::int64_t step) {
  if (unread_.empty()) return;
  end_step(step, 0);
  settle();
}

void StepLosses::end_step(std::int64_t step, double seconds) {
  settle();
  StepLoss ended{.step = step, .micro_batches = std::exchange(known_, {}), .seconds = seconds};
  if (unread_.empty()) return saw_(ended);
  late_.start(at::stack(std::exchange(unread_, {})).to(at::kDouble));
  last_ = std::move(ended);
}

void StepLosses::settle() {
  if (!last_) return;
  StepLoss ended = *std::exchange(last_, std::nullopt);
  const at::Tensor losses = late_.take();
  const double* first = losses.const_data_ptr<double>();
  ended.micro_batches.assign(first, first + losses.numel());
  saw_(ended);
}

}  // namespace decent
