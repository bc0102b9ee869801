// All workers update with the mean of their gradients, as PyTorch's DistributedDataParallel does.

#include "decent/parallel/distributed_data_parallel.h"
#include "decent/parallel/exchange/gradients.h"
#include "decent/train/methods/built_in.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

std::vector<Phase> everyone_with_everyone(const ParallelRecipe&, const Member& member) {
  return make_topology("complete", member.size(), member.local_size);
}

std::string sent_gradients(const ParallelRecipe& recipe) {
  return "gradients in " + recipe.comm_dtype;
}

std::function<ExchangeCosts(int)> costs_of_gradients(const ParallelRecipe& recipe) {
  return [type = gradient_type(recipe.comm_dtype)](int members) {
    return gradient_costs(type, members);
  };
}

std::string all_reduce_text(const Run&) { return "all-reduce of gradients"; }

std::unique_ptr<TrainedParameters> make_distributed(const Run& run,
                                                    std::shared_ptr<Communicator> communicator,
                                                    const TrainingSigns& signs) {
  return std::make_unique<DistributedDataParallel<TrainedModule>>(
      TrainedModule(*run.task.model), std::move(communicator),
      DistributedDataParallelOptions{.training = training_options(run, signs),
                                     .comm_dtype = run.task.recipe.parallel.comm_dtype,
                                     .weight = run.plan.sampler->weight()});
}

// A bucket is sent once all its gradients are there, and its mean must arrive before the step ends,
// so sending has to begin early in backward. All-reduces of smaller buckets are slower again.
constexpr double kBucketMb = 4;

}  // namespace

ParallelMethod all_reduce_method() {
  return {.name = "all_reduce",
          .sends = {"fp32", "bf16"},
          .bucket_mb = kBucketMb,
          .copies_alike = true,
          .phases = everyone_with_everyone,
          .sent = sent_gradients,
          .costs = costs_of_gradients,
          .text = all_reduce_text,
          .make = make_distributed};
}

}  // namespace decent
