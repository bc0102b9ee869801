#include "decent/train/run.h"

#include <utility>

namespace decent {

Run prepare_run(const Recipe& recipe, const Launch& launch, const Membership& workers,
                const LearnedData* known) {
  Task task = open_task(recipe, launch, Purpose::training, known);
  Plan plan = make_plan(task, launch, workers);
  const std::vector<std::int64_t> first_batch = plan.sampler->micro_batch(0, 0);
  Trial trial = try_task(task, workers, launch.rank, first_batch);
  return {std::move(task), std::move(plan), std::move(trial)};
}

}  // namespace decent
