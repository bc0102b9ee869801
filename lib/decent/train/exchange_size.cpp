#include "decent/train/exchange_size.h"

#include <algorithm>
#include <numeric>

#include "decent/parallel/bucket_plan.h"
#include "decent/parallel/named_tensors.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

// Larger ones are told of.
constexpr std::size_t kMaxSmallEdge = 4;

using Costs = std::function<ExchangeCosts(int members)>;

Costs costs_of(const Run& run) { return method_of(run).costs(run.task.recipe.parallel); }

std::int64_t slices_of(const Run& run) {
  return method_of(run).averages_weights ? run.task.recipe.parallel.slices : 1;
}

// Bytes of the weights that take part in the exchange of one step.
double exchanged_bytes(const Run& run) {
  const std::vector<std::int64_t> bytes = bucket_bytes(run);
  const auto all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  return static_cast<double>(all) / static_cast<double>(slices_of(run));
}

// What one worker sends in one step over what of the weights takes part, on average over phases.
double sent_per_weight(const Costs& costs, const std::vector<Phase>& phases, int workers) {
  double total = 0;
  for (const Phase& phase : phases) {
    for (const Edge& edge : phase) {
      const auto n = static_cast<int>(edge.ranks.size());
      total += n * costs(n).sent;
    }
  }
  return total / static_cast<double>(phases.size()) / workers;
}

}  // namespace

std::vector<std::int64_t> bucket_bytes(const Run& run) {
  std::vector<ParameterSize> sizes;
  for (const auto& [name, tensor] : trained_part(run.task.model->parameters())) {
    sizes.push_back({.numel = tensor.numel(),
                     .element_bytes = static_cast<int>(tensor.element_size()),
                     .dtype = static_cast<int>(tensor.scalar_type())});
  }
  std::vector<std::int64_t> bytes;
  for (const PlannedBucket& bucket : plan_buckets(sizes, run.task.recipe.parallel.bucket_mb)) {
    bytes.push_back(bucket.numel * bucket.element_bytes);
  }
  return bytes;
}

// The largest edge of this worker decides. Where only some of its neighbours share memory an
// exchange of weights may need what either way needs; gradients then all go the other way.
std::optional<double> exchange_memory(const Run& run, int rank) {
  const Costs costs = costs_of(run);
  if (!costs) return std::nullopt;
  std::size_t largest = 1;
  for (const Phase& phase : run.plan.topology)
    largest = std::max(largest, edge_of(phase, rank).ranks.size());
  const ExchangeCosts of_edge = costs(static_cast<int>(largest));
  const double sharing = of_edge.memory_sharing.value_or(of_edge.memory);
  const Sharing shared = run.task.device.sharing;
  const bool by_pairs = method_of(run).averages_weights;
  double memory = 0;
  if (shared != Sharing::all) memory += of_edge.memory;
  if (shared == Sharing::all || (shared != Sharing::none && by_pairs)) memory += sharing;
  return memory * exchanged_bytes(run);
}

SentFacts sent_facts(const Run& run, int workers) {
  const ParallelRecipe& recipe = run.task.recipe.parallel;
  SentFacts facts{.method = method_of(run).sent(recipe),
                  .slices = slices_of(run),
                  .link_mbit = recipe.link_mbit};
  if (const Costs costs = costs_of(run))
    facts.bytes = sent_per_weight(costs, run.plan.topology, workers) * exchanged_bytes(run);
  return facts;
}

std::optional<LargestEdge> large_edge(const Run& run) {
  if (!method_of(run).averages_weights) return std::nullopt;
  std::size_t largest = 0;
  for (const Phase& phase : run.plan.topology) {
    for (const Edge& edge : phase) largest = std::max(largest, edge.ranks.size());
  }
  const Costs costs = costs_of(run);
  if (largest <= kMaxSmallEdge || !costs) return std::nullopt;
  const auto members = static_cast<int>(largest);
  return LargestEdge{.members = members,
                     .bytes = costs(members).sent * exchanged_bytes(run),
                     .pairs = costs(members).sent / costs(2).sent};
}

}  // namespace decent
