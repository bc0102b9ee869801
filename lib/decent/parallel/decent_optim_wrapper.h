#pragma once
// Decentralized training for a loop that already has a torch optimizer: the wrapper's step()
// replaces the optimizer's, and also averages weights with the neighbours.
//
// Step t = 1, 2, .. of worker i, with x_i^0 the common start and W^(k) the mixing matrix of phase
// k:
//
//     z_i   = x_i^0                        t = 1
//           = sum_j W^(k)_ij x_j^(t-1)     t > 1,  k = (t-2) mod phases
//     x_i^t = optimizer.step() from z_i, with the gradient at x_i^(t-1)
//
// The exchange of x^t starts at the end of step t and is under way until step t + 1.
//
//     auto adamw = std::make_shared<torch::optim::AdamW>(model->parameters(), 1e-3);
//     decent::DecentOptimWrapper optimizer(adamw, "ring", workers.communicator());
//     torch::optim::StepLR schedule(*adamw, 1000);
//     for (..) {
//       optimizer.zero_grad();
//       loss(..).backward();
//       optimizer.step();
//       schedule.step();
//     }
//     optimizer.global_avg(false);  // every worker holds the average now
//
// Threads: one object is used by one thread. Collective: constructor, step (through the exchanges
// that it waits for), global_avg.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/topology/topology.h"

namespace torch::optim {
class Optimizer;
}

namespace decent {

class Replica;

struct DecentOptimWrapperOptions {
  double bucket_cap_mb = 25.0;  // MiB
  /// Workers per node, for topologies that need it; 0: the launcher's value (LOCAL_WORLD_SIZE).
  int local_world_size = 0;
  ExchangeChoice exchange = "fp32";  // see DecentralizedOptions
  /// For modulo exchanges: the highest learning rate of all parameter groups in step t = 1, 2, ..,
  /// as the optimizer will use it. The optimizer is still given its rate by the caller.
  Schedule schedule = nullptr;
};

class DecentOptimWrapper {
 public:
  /// Runs forward and backward and returns the loss, as torch::optim::Optimizer::LossClosure.
  using Closure = std::function<at::Tensor()>;

  /// Takes over the parameters of all groups of the optimizer that require a gradient. They become
  /// views of flat buckets of `bucket_cap_mb` MiB; the module and the optimizer keep their tensor
  /// handles. Every worker gets rank 0's values of all parameters in the groups, including those
  /// that do not require a gradient. Collective.
  /// Throws UserError, before any parameter is touched, for
  ///  - no optimizer or no communicator (null), a bucket size that is not positive,
  ///  - torch::optim::LBFGS, which evaluates its closure several times within a step,
  ///  - an optimizer without a parameter that requires a gradient, or with one listed twice,
  ///  - parameters that cannot be trained in place (see check_storage),
  ///  - a topology that does not fit the number of workers (see phases_of),
  ///  - options of the exchange that are out of range,
  ///  - a modulo exchange without a schedule, or with torch::optim::SGD or RMSprop, whose steps are
  ///    not bounded by the learning rate.
  DecentOptimWrapper(std::shared_ptr<torch::optim::Optimizer> optimizer, Topology topology,
                     std::shared_ptr<Communicator> communicator, DecentOptimWrapperOptions options);
  /// The same with other options at their defaults.
  DecentOptimWrapper(std::shared_ptr<torch::optim::Optimizer> optimizer, Topology topology,
                     std::shared_ptr<Communicator> communicator, double bucket_cap_mb = 25.0,
                     int local_world_size = 0);
  DecentOptimWrapper(const DecentOptimWrapper&) = delete;
  DecentOptimWrapper& operator=(const DecentOptimWrapper&) = delete;
  /// Does not communicate: after an orderly end, global_avg(false) has waited for all exchanges.
  ~DecentOptimWrapper();

  /// Mixes, steps the optimizer, starts the next exchange. A parameter without a gradient is mixed
  /// but not updated. A closure is called once, before the weights change, as if it were called
  /// before step(). Returns the closure's result, or an undefined tensor without a closure. Throws
  /// std::logic_error, before any weight is changed,
  ///  - between global_avg() and revert_global_avg(), without calling the closure,
  ///  - if a parameter was added to the optimizer or unfrozen after the construction,
  ///  - if a parameter got other memory (set_data, torch::load, Module::to),
  ///  - if parameters were written since the last step, because neighbours may be reading them.
  ///    After global_avg(false) they may be written. The check does not notice a few elements that
  ///    are written through .data(), but it notices an optimizer's step.
  /// If the optimizer itself throws (a sparse gradient, for instance), this worker is in the middle
  /// of a step, and the object cannot be used any more.
  at::Tensor step(const Closure& closure = nullptr);

  /// The optimizer's zero_grad().
  void zero_grad(bool set_to_none = true);

  /// Replaces the parameters by the average over all workers; the optimizer's state stays. With
  /// `may_revert`, revert_global_avg() restores parameters and the exchange under way bit for bit.
  /// Without it, that exchange is dropped and the next step does not mix. A second average before
  /// the revert changes nothing. With `return_distance`, returns the consensus distance
  /// sqrt(mean over workers of ||x_i - mean||^2). Throws std::logic_error as step() does, before
  /// anything is changed, if a parameter was added or got other memory and, with `may_revert`, if
  /// parameters were written.
  std::optional<double> global_avg(bool may_revert = true, bool return_distance = false);
  /// Throws std::logic_error if there is nothing to revert.
  void revert_global_avg();

  /// The wrapped optimizer, for torch's schedulers, its state and its options. Do not call its
  /// step(), which would not average.
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const torch::optim::Optimizer& optimizer() const { return *optimizer_; }

  /// Steps done so far.
  std::int64_t steps() const { return steps_; }
  std::size_t bucket_count() const;

  /// As DecentralizedParameters::wrap_share().
  std::optional<double> wrap_share() const;

 private:
  // Shows whether a parameter was written: compares equal if it was not.
  struct Written {
    std::int64_t version = 0;
    std::uint64_t trace = 0;  // hash of some of its elements
    bool operator==(const Written&) const = default;
  };

  void check_parameters() const;
  void check_unwritten() const;
  void mix_buckets();
  void start_exchange();
  void weights_changed();
  void remember_writes();

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<Communicator> communicator_;
  std::unique_ptr<Replica> replica_;       // of the parameters that require a gradient
  std::unordered_set<const void*> known_;  // their TensorImpl
  std::vector<Written> written_;           // by parameter, when the exchange started; empty: none
  std::unique_ptr<Exchange> exchange_;
  std::int64_t steps_ = 0;
};

}  // namespace decent
