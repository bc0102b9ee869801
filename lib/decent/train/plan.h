#pragma once
// What this worker does in each step of a run: the neighbours that it meets, the samples that it
// takes, its learning rate, and what evaluations change.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/core/membership.h"
#include "decent/data/sampler.h"
#include "decent/task/task.h"
#include "decent/task/trial.h"
#include "decent/topology/topology.h"
#include "decent/train/evaluation/evaluation_rules.h"
#include "decent/train/learning_rates.h"

namespace decent {

/// Where a resumed run continues: after `step` updates, which ended at `position` of the training
/// data.
struct ResumePoint {
  std::int64_t step = 0;
  DataPosition position = {};
};

struct Plan {
  std::vector<Phase> topology;
  /// The topology's name if it is parallel.topology_otherwise; empty if it is parallel.topology.
  std::string topology_otherwise = {};
  std::vector<int> machines = {};  // see Member
  std::unique_ptr<Sampler> sampler;
  LearningRates rates;
  EvaluationRules rules = {};
  std::int64_t first_step = 0;   // updates done before this run starts or resumes
  std::int64_t total_steps = 0;  // updates of the whole run
  bool resumes = false;          // from a checkpoint, which may be of step 0
};

/// The plan of this worker, for the whole run or for the steps after `from`. `task` has training
/// data. Only a run that resumes, `from` somewhere, may have a number of workers that its topology
/// does not fit. Throws UserError.
Plan make_plan(const Task& task, const Member& member,
               const std::optional<ResumePoint>& from = std::nullopt);

/// A run that this worker has opened, planned and tried by itself.
struct Run {
  Task task;
  Plan plan;
  Trial trial;
};

/// Opens the task of `recipe`, plans its whole run, and tries a batch of each source. Throws
/// UserError. Talks to no other worker. `known`: see open_task. `may_resume`: whether there is a
/// checkpoint is not known yet, so that the run is planned as one that resumes; it is planned again
/// once that is known.
Run prepare_run(const Recipe& recipe, const Launch& launch, const Member& member,
                const LearnedData* known = nullptr, bool may_resume = false);

}  // namespace decent
