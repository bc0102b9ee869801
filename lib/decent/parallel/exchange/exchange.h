#pragma once
// How workers exchange their weights: an object that knows with whom this worker exchanges after
// which step, which exchanges are under way, and what its method remembers from step to step.
//
// In step t = 1, 2, .. this happens to every bucket, in the same order on every worker:
//
//     wait(bucket)          returns the received x^(t-1) for the update to mix with; none in step 1
//     ..                    the update writes x^t
//     start(bucket, t)      sends x^t, which nobody writes before the next wait()
//
// A method is one file beside this one and a row in methods.cpp; a user's own method is given to
// DecentralizedOptions::exchange. It uses meetings.h (with whom to exchange after step t),
// pending_exchanges.h (the exchanges under way, each waited for once) and, to exchange a part of
// the bucket in each step, slice_mixing.h. If a method sends something other than x, it computes
// the message in start(), in its own pass over the bucket, or in the pass of the update, through
// while_writing().

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/options.h"
#include "decent/core/trace.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/schedule.h"
#include "decent/parallel/named_tensors.h"
#include "decent/topology/topology.h"

namespace decent {

/// The weights received from a worker's neighbours, before they are averaged with its own.
struct Received {
  const Edge* edge = nullptr;  // the ranks that exchange, including this one, and their self-weight
  // [numel]: in a pair the peer's bucket, else the mean of the other members'. Elements that are
  // not exchanged in this step have this worker's own values.
  at::Tensor others;
};

/// The factor of the learning rate from element `offset` of a bucket to the next such offset.
struct LrScaleFrom {
  std::int64_t offset = 0;
  double lr_scale = 1;
};

/// How a method exchanges.
struct ExchangeOptions {
  std::int64_t slices = 1;  // K: in every step each bucket exchanges 1/K of itself, in turn
  /// The method's own options by their names (ExchangeMethod::keys): {{"modulo_range", 12.0}}.
  /// Those that only other methods take are not looked at.
  Options own = {};

  bool operator==(const ExchangeOptions&) const = default;
};

/// The arguments for making an exchange.
struct ExchangeSetup {
  std::shared_ptr<Communicator> communicator;  // of the workers that train together
  std::vector<Phase> phases;                   // valid, of ranks of `communicator`
  std::vector<at::Tensor> buckets;             // [numel] each, contiguous, never reallocated
  std::shared_ptr<Trace> trace = nullptr;      // records exchanges that start while it is on
  ExchangeOptions options = {};                // checked
  Schedule schedule = nullptr;                 // learning rate, for methods that need near copies
  // By bucket, in ascending order, the first at 0. Empty: all 1.
  std::vector<std::vector<LrScaleFrom>> lr_scales = {};
  // The phases with all edges, if another exchange has some of them and their members are alone in
  // `phases` (by_machine.h). Empty: `phases`.
  std::vector<Phase> all_phases = {};
};

/// Not thread-safe. The constructor is collective over the members, and so is the order of start()
/// and wait(). The destructor does not communicate. wait(), peek(), settle() and drop() throw
/// PeerLost if a neighbour is gone.
class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Changes the mixing strength, which is 1 until then, between steps.
  virtual void set_gamma(double gamma) { gamma_ = gamma; }

  /// Work for the update that writes x^(step) into `bucket` to do on each piece that it has written
  /// (BucketStep::written), while the piece is in the cache. Called after wait() and before
  /// start(), which does the rest.
  virtual PieceWork while_writing(std::size_t /*bucket*/, std::int64_t /*step*/) { return nullptr; }

  /// Starts to send bucket number `bucket`, which holds the weights x^(step), and to receive the
  /// neighbours' weights. No exchange of this bucket may be under way.
  virtual void start(std::size_t bucket, std::int64_t step) = 0;

  /// Waits for the exchange of `bucket` and returns how to mix with the received weights:
  /// z = (1-gamma) x + gamma sum_j W_ij x_j. The pointer in the result is valid until the next
  /// start(). If no exchange is under way, z = x. After it, none is under way.
  virtual Mixing wait(std::size_t bucket) = 0;

  /// Waits for the exchange of `bucket` and returns the received weights, for callbacks that look
  /// at them before they are mixed; nullopt if no exchange is under way. wait() still follows.
  virtual std::optional<Received> peek(std::size_t bucket) = 0;

  /// Waits for all exchanges under way but keeps the received weights, so that a later wait() still
  /// mixes with them.
  virtual void settle() = 0;

  /// Waits for all exchanges under way and discards them: the next wait() does not mix.
  virtual void drop() = 0;

  /// What the method remembers from one step to the next: tensors of live memory (scalars may be
  /// copies), always with the same names, shapes and dtypes. Checkpoints hold it as
  /// "exchange.<name>". It is called between steps, while the exchanges of the last step are under
  /// way. On resuming, start() of that step is called again after restore(). So a method must
  /// change what it remembers in wait() and not in start().
  virtual NamedTensors state() const { return {}; }

  /// Called after the tensors of state() have been given the values of a checkpoint, with no
  /// exchange under way. `state` is that list; read copies from it.
  virtual void restore(const NamedTensors& /*state*/) {}

  /// See DecentralizedParameters::wrap_share().
  virtual std::optional<double> wrap_share() const { return std::nullopt; }

 protected:
  double gamma() const { return gamma_; }

 private:
  double gamma_ = 1;
};

using ExchangeFactory = std::function<std::unique_ptr<Exchange>(const ExchangeSetup&)>;

}  // namespace decent
