#pragma once
// The exchange of gradients: the gradients of a bucket are averaged over all workers in one
// all-reduce, which starts as soon as this worker's are complete; only the update waits for it.
//
// The message of a bucket is
//
//     [numel]       this worker's gradients, times its weight over the number of workers, in the
//                   layout of the bucket
//     [parameters]  1 for each parameter of which this worker has a gradient, else 0
//
// so that the sum holds the weighted mean of the gradients, and says which parameters somebody has
// used.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/trace.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/replica.h"

namespace decent {

/// The element type that gradients are sent in.
enum class GradientType {
  as_computed,  // that of the parameters
  bf16,         // added up in bfloat16, too, as PyTorch's bf16_compress_hook does
};

/// "fp32" or "bf16". Throws UserError for another name.
GradientType gradient_type(const std::string& comm_dtype);

/// What the exchange costs each of `workers` workers.
ExchangeCosts gradient_costs(GradientType type, int workers);

/// Not thread-safe. All workers call start(), and then wait(), in the same order of buckets. In a
/// step, each bucket goes through put() for its parameters, start(), wait(), release().
class GradientExchange {
 public:
  /// `replica` must outlive it. `weight`: of this worker in the mean; those of all workers have the
  /// mean 1. With `whole_parameters`, wait() gives the gradient of a parameter in one piece.
  GradientExchange(std::shared_ptr<Communicator> communicator, const Replica& replica,
                   GradientType type, double weight, bool whole_parameters,
                   std::shared_ptr<Trace> trace);

  /// Copies the gradient of the parameter at `place` of `bucket` into the message. Afterwards the
  /// gradient is not needed any more. Throws UserError for a sparse gradient.
  void put(std::size_t bucket, std::size_t place, const at::Tensor& gradient);

  /// Starts the all-reduce of a bucket. Parameters that were not put have no gradient here.
  void start(std::size_t bucket);
  /// Whether wait() would return at once.
  bool done(std::size_t bucket);
  /// Waits for the mean gradients. `slices`: the parameters of the bucket, without gradients. The
  /// result may be read until release(), and is the same, bit for bit, on all workers; nothing if
  /// the sum was given up because a worker is lost. Throws PeerLost if a worker is gone.
  std::optional<BucketGradients> wait(std::size_t bucket, const std::vector<BucketSlice>& slices);
  /// The mean gradients of wait(), as one flat tensor [numel] that stays until the next wait().
  at::Tensor flat(std::size_t bucket);
  void release(std::size_t bucket);

 private:
  struct OfBucket {
    std::array<at::Tensor, 2> messages =
        {};  // in turn, if others read them in place; else the first
    std::size_t turn = 0;
    bool open = false;           // a gradient was put in this step
    std::vector<bool> put = {};  // by place
    std::shared_ptr<PendingReceived> sum = nullptr;
    Pending pending = nullptr;
    // From the arrival of the sum until release():
    std::vector<ReceivedPart> parts = {};  // of the sum, in the element type of the parameters
    std::vector<bool> present = {};        // by place: whether any worker has a gradient
    at::Tensor gradients = {};             // [numel], if the sum must be in one piece
  };

  void open(std::size_t bucket);
  at::Tensor& message(OfBucket& own);
  at::Tensor place_in(const at::Tensor& message, std::size_t bucket, std::size_t place) const;
  void mark_used(std::size_t bucket, const at::Tensor& sent);
  bool receive(std::size_t bucket);
  std::vector<bool> used(std::size_t bucket) const;
  void join_parts(std::size_t bucket);

  std::shared_ptr<Communicator> communicator_;
  const Replica& replica_;
  GradientType type_;
  double factor_;  // of gradients that are sent
  bool whole_parameters_;
  std::shared_ptr<Trace> trace_;
  bool read_in_place_;  // by all other workers
  std::vector<OfBucket> buckets_;
};

}  // namespace decent
