#include "decent/train/run.h"

#include <utility>

namespace decent {

Run prepare_run(const Recipe& recipe, const Launch& launch, const LearnedData* known) {
  Task task = open_task(recipe, launch, Purpose::training, known);
  const Member member = launch.member();
  Plan plan = make_plan(task, member);
  const std::vector<std::int64_t> first_batch = plan.sampler->micro_batch(0, 0);
  Trial trial = try_task(task, member, first_batch);
  return {std::move(task), std::move(plan), std::move(trial)};
}

}  // namespace decent
