#pragma once
// A communicator that does nothing. Tests derive from it and override the functions under test.

#include <memory>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent::testing {

class IdleCommunicator : public Communicator {
 public:
  explicit IdleCommunicator(int rank = 0, int size = 2) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Pending all_reduce_sum(const at::Tensor&) override { return nullptr; }
  Pending broadcast(const at::Tensor&, int) override { return nullptr; }
  Pending exchange(const at::Tensor&, const at::Tensor&, int, int) override { return nullptr; }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>&) override { return nullptr; }
  void barrier() override {}

 private:
  int rank_;
  int size_;
};

}  // namespace decent::testing
