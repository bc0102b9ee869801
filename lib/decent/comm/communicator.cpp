#include "decent/comm/communicator.h"

#include <stdexcept>

namespace decent {
namespace {

class Done : public PendingWork {
 public:
  void wait() override {}
  bool done() override { return true; }
};

class SingleWorker : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Pending all_reduce_sum(const at::Tensor&) override { return std::make_unique<Done>(); }
  Pending broadcast(const at::Tensor&, int) override { return std::make_unique<Done>(); }
  Pending exchange(const at::Tensor&, const at::Tensor&, int, int) override {
    throw std::logic_error("a single worker has no peer to exchange with");
  }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>&) override {
    return make_single_worker();
  }
  void barrier() override {}
};

}  // namespace

std::shared_ptr<Communicator> make_single_worker() { return std::make_shared<SingleWorker>(); }

}  // namespace decent
