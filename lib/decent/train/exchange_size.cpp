#include "decent/train/exchange_size.h"

#include <algorithm>
#include <numeric>

#include "decent/parallel/bucket_plan.h"
#include "decent/parallel/exchange/by_machine.h"
#include "decent/parallel/named_tensors.h"
#include "decent/train/methods.h"

namespace decent {
namespace {

// The user is told about larger edges.
constexpr std::size_t kMaxSmallEdge = 4;

using Costs = std::function<ExchangeCosts(int members)>;

// With parallel.comm_dtype_within, edges within a machine have costs of their own.
enum class Place { between, within };

bool has_two_places(const Run& run) {
  return method_of(run).averages_weights && run.task.recipe.parallel.comm_dtype_within;
}

Place place_of(const Run& run, const Edge& edge) {
  const bool within = has_two_places(run) && within_machine(edge, run.plan.machines);
  return within ? Place::within : Place::between;
}

Costs costs_of(const Run& run, Place place) {
  ParallelRecipe recipe = run.task.recipe.parallel;
  if (place == Place::within) recipe.comm_dtype = recipe.comm_dtype_within.value();
  return method_of(run).costs(recipe);
}

std::int64_t slices_of(const Run& run) {
  return method_of(run).averages_weights ? run.task.recipe.parallel.slices : 1;
}

// The bytes of the weights that are exchanged in one step.
double exchanged_bytes(const Run& run) {
  const std::vector<std::int64_t> bytes = bucket_bytes(run);
  const auto all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  return static_cast<double>(all) / static_cast<double>(slices_of(run));
}

// The bytes that one worker sends in one step in edges of `place`, on average over phases and
// workers; nothing if not known.
std::optional<double> sent_bytes(const Run& run, Place place, int workers) {
  const Costs costs = costs_of(run, place);
  if (!costs) return std::nullopt;
  double total = 0;
  for (const Phase& phase : run.plan.topology) {
    for (const Edge& edge : phase) {
      const auto n = static_cast<int>(edge.ranks.size());
      if (place_of(run, edge) == place) total += n * costs(n).sent;
    }
  }
  const double per_weight = total / static_cast<double>(run.plan.topology.size()) / workers;
  return per_weight * exchanged_bytes(run);
}

// The largest edge of this worker decides. If only some workers share memory, an exchange of
// weights may need the memory of both ways; an exchange of gradients then does not use shared
// memory at all.
std::optional<double> memory_per_weight(const Run& run, Place place, int rank) {
  const Costs costs = costs_of(run, place);
  if (!costs) return std::nullopt;
  std::size_t largest = 1;
  for (const Phase& phase : run.plan.topology) {
    const Edge& edge = edge_of(phase, rank);
    if (place_of(run, edge) == place) largest = std::max(largest, edge.ranks.size());
  }
  const ExchangeCosts of_edge = costs(static_cast<int>(largest));
  const double sharing = of_edge.memory_sharing.value_or(of_edge.memory);
  const Sharing shared = run.task.device.sharing;
  const bool by_pairs = method_of(run).averages_weights;
  const bool all_share = shared == Sharing::all || place == Place::within;
  double memory = 0;
  if (shared == Sharing::none || !all_share) memory += of_edge.memory;
  if (shared != Sharing::none && (all_share || by_pairs)) memory += sharing;
  return memory;
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

std::optional<double> exchange_memory(const Run& run, int rank) {
  std::optional<double> memory = memory_per_weight(run, Place::between, rank);
  if (memory && has_two_places(run)) {
    const auto within = memory_per_weight(run, Place::within, rank);
    memory = within ? std::optional(*memory + *within) : std::nullopt;
  }
  if (!memory) return std::nullopt;
  return *memory * exchanged_bytes(run);
}

SentFacts sent_facts(const Run& run, int workers) {
  const ParallelRecipe& recipe = run.task.recipe.parallel;
  SentFacts facts{.method = method_of(run).sent(recipe),
                  .slices = slices_of(run),
                  .bytes = sent_bytes(run, Place::between, workers),
                  .link_mbit = recipe.link_mbit};
  if (!has_two_places(run)) return facts;
  facts.bytes_within = sent_bytes(run, Place::within, workers);
  if (!facts.bytes_within) facts.bytes = std::nullopt;
  return facts;
}

std::optional<std::string> unused_exchange(const Run& run) {
  if (!has_two_places(run)) return std::nullopt;
  bool between = false;
  bool within = false;
  for (const Phase& phase : run.plan.topology) {
    for (const Edge& edge : phase) {
      if (edge.ranks.size() == 1) continue;
      (place_of(run, edge) == Place::within ? within : between) = true;
    }
  }
  if (between && !within)
    return "parallel.comm_dtype_within is not used: no edge of the topology has all its members on "
           "one machine";
  if (within && !between)
    return "parallel.comm_dtype is not used: every edge of the topology is within a machine, where "
           "parallel.comm_dtype_within applies";
  return std::nullopt;
}

std::optional<LargestEdge> large_edge(const Run& run) {
  if (!method_of(run).averages_weights) return std::nullopt;
  const Edge* largest = nullptr;
  for (const Phase& phase : run.plan.topology) {
    for (const Edge& edge : phase)
      if (largest == nullptr || edge.ranks.size() > largest->ranks.size()) largest = &edge;
  }
  if (largest == nullptr || largest->ranks.size() <= kMaxSmallEdge) return std::nullopt;
  const Costs costs = costs_of(run, place_of(run, *largest));
  if (!costs) return std::nullopt;
  const auto members = static_cast<int>(largest->ranks.size());
  return LargestEdge{.members = members,
                     .bytes = costs(members).sent * exchanged_bytes(run),
                     .pairs = costs(members).sent / costs(2).sent};
}

}  // namespace decent
