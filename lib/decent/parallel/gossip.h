#pragma once
// The exchange of flat buckets with this worker's neighbours, phase by phase.
//
// A pair sends straight from the bucket and receives beside it, so nobody may write a bucket
// between start() and wait(). Larger edges all-reduce a copy. Every worker starts the same buckets
// in the same order.
//
// In bfloat16 workers send q(x), rounded, and mix with what the rounded values differ by,
//
//     z_i = x_i + gamma sum_j W_ij (q(x_j) - q(x_i)),
//
// so that what one member of an edge gains the others lose: rounding does not move the average, as
// it would in sum_j W_ij q(x_j).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/trace.h"
#include "decent/optim/bucket_update.h"
#include "decent/parallel/rounded_bucket.h"
#include "decent/topology/topology.h"

namespace decent {

/// What came from a worker's neighbours, before it is averaged with its own.
struct Received {
  const Edge* edge = nullptr;  // who meets in this phase, this worker among them, and the weight
  at::Tensor others;  // flat: a pair: the peer's bucket; else the mean of the other members'
};

/// What weights are on the wire.
enum class ExchangeType {
  as_they_are,
  bfloat16,  // half the bytes in edges of 2, 3/4 in 3; larger ones all-reduce rounded float32
};

/// The phases of `topology`, with `local_world_size` workers per node, or what the launcher says
/// where that is 0. Throws UserError as Topology::phases and read_launch do.
std::vector<Phase> phases_of(const Topology& topology, int world_size, int local_world_size);

class Gossip {
 public:
  /// Makes and connects the groups that this worker needs. `trace` (null: none) gets the exchanges
  /// that start while it is on. Collective over `world`.
  Gossip(std::shared_ptr<Communicator> world, const std::vector<Phase>& phases, std::size_t buckets,
         ExchangeType type = ExchangeType::as_they_are, std::shared_ptr<Trace> trace = nullptr);

  std::int64_t phases() const { return static_cast<std::int64_t>(meetings_.size()); }

  /// Starts the exchange of bucket number `bucket`, flat tensor `x`, in phase `phase`.
  void start(std::size_t bucket, const at::Tensor& x, std::int64_t phase);

  /// Waits for the exchange of `bucket` and tells how to mix with what came: z = (1-gamma) x +
  /// gamma sum_j W_ij x_j. The pointer in it is good until the next start(). Without an exchange: z
  /// = x. Either way none is under way after.
  Mixing wait(std::size_t bucket, double gamma);

  /// Waits for the exchange of `bucket`, flat tensor `x`, and gives what came, for whoever wants to
  /// see it before wait() mixes with it; nothing without an exchange.
  std::optional<Received> peek(std::size_t bucket, const at::Tensor& x);

  /// Waits for everything under way but keeps what came, so that a later wait() still mixes with
  /// it.
  void settle();

  /// Waits for everything under way and forgets it: the next wait() does not mix.
  void drop();

 private:
  // What this worker does in one phase.
  struct Meeting {
    Edge edge = {};
    int members = 1;
    double weight = 1.0;
    int peer = -1;                                  // a pair: the other's rank
    std::vector<int> peers = {};                    // all others
    std::shared_ptr<Communicator> group = nullptr;  // more than two
  };
  struct Flight {
    Pending work;                      // null once waited for
    const Meeting* meeting = nullptr;  // null: nothing under way
    at::Tensor received;         // a pair: the peer's bucket; a group: the sum over its members
    RoundedBucket rounded = {};  // in bfloat16; received then gets what comes of it
  };

  std::int64_t bytes_of(const at::Tensor& x, const Meeting& meeting) const;
  Pending send(std::size_t bucket, const at::Tensor& x, const Meeting& meeting);
  void finish(Flight& flight);
  Mixing mixing(const Flight& flight, double gamma) const;

  std::shared_ptr<Communicator> world_;
  ExchangeType type_;
  std::shared_ptr<Trace> trace_;   // outlives the flights, whose ends it notes
  std::vector<Meeting> meetings_;  // by phase
  std::vector<Flight> flights_;    // by bucket
};

}  // namespace decent
