#pragma once
// How workers give each other their weights: an object that knows who meets when, what is under way
// and what its method remembers from one step to the next.
//
// What happens to every bucket in step t = 1, 2, .., in the same order on every worker:
//
//     wait(bucket, gamma)   what came of x^(t-1), for the update to mix with; nothing in step 1
//     ..                    the update writes x^t
//     start(bucket, t)      sends x^t, which nobody writes before the next wait()
//
// A method is one file beside this one and a row in methods.cpp; a user's own is given to
// DecentralizedOptions::exchange. It is made of meetings.h (whom does this worker meet after step
// t?), pending_exchanges.h (what is under way, waited for once) and what it sends. What a method
// sends in the place of x it makes in start(), in a pass of its own over the bucket.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/membership.h"
#include "decent/core/trace.h"
#include "decent/optim/bucket_update.h"
#include "decent/parallel/named_tensors.h"
#include "decent/topology/topology.h"

namespace decent {

/// What came from a worker's neighbours, before it is averaged with its own.
struct Received {
  const Edge* edge = nullptr;  // ranks that meet, this worker among them, and the weight
  at::Tensor others;  // flat: a pair: the peer's bucket; else the mean of the other members'
};

/// What an exchange is made for.
struct ExchangeSetup {
  std::shared_ptr<Communicator> world;     // all that were started, the members among them
  Membership membership;                   // of ranks of `world`, this worker's among them
  std::vector<Phase> phases;               // valid ones, whose "ranks" are places in the membership
  std::vector<at::Tensor> buckets;         // flat, contiguous, the same memory as long as it lives
  std::shared_ptr<Trace> trace = nullptr;  // gets the exchanges that start while it is on
};

/// Not thread-safe. The constructor is collective over the members, and so are start() and wait()
/// in their order; the destructor does not communicate.
class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Starts to send bucket number `bucket`, which holds the weights x^(step), and to receive the
  /// neighbours'. Nothing of this bucket is under way.
  virtual void start(std::size_t bucket, std::int64_t step) = 0;

  /// Waits for the exchange of `bucket` and tells how to mix with what came: z = (1-gamma) x +
  /// gamma sum_j W_ij x_j. The pointer in it is good until the next start(). Without an exchange: z
  /// = x. Either way none is under way after.
  virtual Mixing wait(std::size_t bucket, double gamma) = 0;

  /// Waits for the exchange of `bucket` and gives what came, for whoever wants to see it before
  /// wait() mixes with it; nothing without an exchange.
  virtual std::optional<Received> peek(std::size_t bucket) = 0;

  /// Waits for everything under way but keeps what came, so that a later wait() still mixes with
  /// it.
  virtual void settle() = 0;

  /// Waits for everything under way and forgets it: the next wait() does not mix.
  virtual void drop() = 0;

  /// What the method remembers from one step to the next: tensors of live memory, for numbers also
  /// copies; the same names, shapes and types at all times. Checkpoints hold it as
  /// "exchange.<name>". It is asked for between steps, with the exchanges of the last one under
  /// way, and is then what start() of that step began with, as that is called again after
  /// restore(): a method changes what it remembers in wait(), not in start().
  virtual NamedTensors state() const { return {}; }

  /// Called once state()'s tensors have been given the values of a checkpoint, with nothing under
  /// way; `state` is that list, for what are copies.
  virtual void restore(const NamedTensors& /*state*/) {}
};

using ExchangeFactory = std::function<std::unique_ptr<Exchange>(const ExchangeSetup&)>;

}  // namespace decent
