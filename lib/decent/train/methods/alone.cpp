// Every worker trains for itself; evaluations and the end average all copies.

#include "decent/parallel/decentralized_data_parallel.h"
#include "decent/train/methods/built_in.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

std::vector<Phase> each_alone(const ParallelRecipe&, const Member& member) {
  Phase phase;
  for (int rank = 0; rank < member.size(); ++rank)
    phase.push_back({.ranks = {rank}, .self_weight = 1});
  return {phase};
}

std::string nothing(const ParallelRecipe&) { return "nothing"; }

std::function<ExchangeCosts(int)> no_costs(const ParallelRecipe&) {
  return [](int) { return ExchangeCosts{}; };
}

std::string alone_text(const Run&) { return "each trains alone"; }

std::unique_ptr<TrainedParameters> make_alone(const Run& run,
                                              std::shared_ptr<Communicator> communicator,
                                              const TrainingSigns& signs) {
  return std::make_unique<DecentralizedDataParallel<TrainedModule>>(
      TrainedModule(*run.task.model), std::move(communicator),
      DecentralizedOptions{.topology = run.plan.topology,
                           .training = training_options(run, signs)});
}

}  // namespace

ParallelMethod alone_method() {
  return {.name = "none",
          .phases = each_alone,
          .sent = nothing,
          .costs = no_costs,
          .text = alone_text,
          .make = make_alone};
}

}  // namespace decent
