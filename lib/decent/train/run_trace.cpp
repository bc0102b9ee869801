#include "decent/train/run_trace.h"

namespace decent {

std::shared_ptr<Trace> make_trace(const Run& run, const RunFolder& folder, int rank) {
  const auto& range = run.task.recipe.log.trace;
  if (!range || (*range)[1] <= run.plan.first_step || (*range)[0] > run.plan.total_steps)
    return nullptr;
  return std::make_shared<Trace>(TraceOptions{
      .first = (*range)[0], .last = (*range)[1], .rank = rank, .file = folder.trace(rank)});
}

std::optional<std::string> trace_warning(const Run& run) {
  const auto& range = run.task.recipe.log.trace;
  if (!range || (*range)[0] <= run.plan.total_steps) return std::nullopt;
  return "log.trace: steps " + std::to_string((*range)[0]) + " to " + std::to_string((*range)[1]) +
         " come after the last step, " + std::to_string(run.plan.total_steps) +
         ": no trace will be written";
}

}  // namespace decent
