#pragma once
// How the workers of a run train together: the values of parallel.method. A method is a file in
// methods/ and a row in methods.cpp.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/config/recipe.h"
#include "decent/core/membership.h"
#include "decent/core/trace.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/trained_parameters.h"
#include "decent/topology/topology.h"

namespace decent {

struct Run;

/// What training shows besides the model that it leaves.
struct TrainingSigns {
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  std::shared_ptr<Trace> trace = nullptr;
};

struct ParallelMethod {
  std::string name;
  /// Whether workers average weights while they train, by the topology and exchange of the recipe.
  bool averages_weights = false;
  /// If not: the values of parallel.comm_dtype that it can send; empty if it sends nothing.
  std::vector<std::string> sends = {};
  double bucket_mb = 25;  // MiB, if the recipe does not say
  /// Whether parameters and optimizer states are the same on all workers, bit for bit, so that a
  /// checkpoint needs them only once.
  bool copies_alike = false;
  /// Who exchanges with whom in which step. Throws UserError.
  std::vector<Phase> (*phases)(const ParallelRecipe& recipe, const Member& member) = nullptr;
  /// What is sent, in words, and its costs; an empty function: not known.
  std::string (*sent)(const ParallelRecipe& recipe) = nullptr;
  std::function<ExchangeCosts(int members)> (*costs)(const ParallelRecipe& recipe) = nullptr;
  /// How the workers train, in a few words: "topology ring (2 phases)".
  std::string (*text)(const Run& run) = nullptr;
  /// Takes over the model of `run`. Collective.
  std::unique_ptr<TrainedParameters> (*make)(const Run& run,
                                             std::shared_ptr<Communicator> communicator,
                                             const TrainingSigns& signs) = nullptr;
};

/// All methods, the default first.
const std::vector<ParallelMethod>& parallel_methods();

/// The method called `name`. Throws UserError for an unknown name.
const ParallelMethod& parallel_method(std::string_view name);
/// The method in the recipe of `run`.
const ParallelMethod& method_of(const Run& run);

}  // namespace decent
