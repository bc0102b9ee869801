#pragma once
// The exchange of one bucket in bfloat16: see gossip.h.

#include <ATen/core/Tensor.h>

#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

class RoundedBucket {
 public:
  /// The most members of an edge who send each other their rounded values; n - 1 times 2 bytes are
  /// then no more than what an all-reduce of float32 sends, 8 (n - 1) / n.
  static constexpr int kMostMembers = 4;

  /// Rounds `x` and starts to send it to `peers` (ranks of `world`), and to receive theirs.
  Pending exchange(const at::Tensor& x, Communicator& world, const std::vector<int>& peers,
                   int tag);
  /// Rounds `x` and starts to add up what all members of `group` rounded, in the type of `x`.
  Pending all_reduce(const at::Tensor& x, Communicator& group);

  /// Once that is done: sum over the other members of q(x_j) - q(x_i), into `difference`, of the
  /// type of x.
  void difference_into(const at::Tensor& difference) const;

  /// Once that is done: q(x_i).
  const at::Tensor& own() const { return own_; }

 private:
  void round(const at::Tensor& x);

  at::Tensor own_;                  // bfloat16
  std::vector<at::Tensor> others_;  // bfloat16, in the order of peers
  at::Tensor sum_;                  // over all members, of the type of x
  int members_ = 0;                 // of an all-reduce; 0: exchanged
};

}  // namespace decent
