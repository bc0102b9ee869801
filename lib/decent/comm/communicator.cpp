#include "decent/comm/communicator.h"

#include <stdexcept>
#include <utility>

namespace decent {
namespace {

class Done : public PendingWork {
 public:
  void wait() override {}
  bool done() override { return true; }
};

class ReceivedInRoom : public PendingReceived {
 public:
  ReceivedInRoom(at::Tensor room, Pending work) : room_(std::move(room)), work_(std::move(work)) {}
  void wait() override { work_->wait(); }
  void wait_on_host() override { work_->wait_on_host(); }
  bool done() override { return work_->done(); }
  std::vector<ReceivedPart> parts() const override { return {{.begin = 0, .values = room_}}; }

 private:
  at::Tensor room_;
  Pending work_;
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

std::shared_ptr<PendingReceived> Communicator::exchange_views(const at::Tensor& send, int peer,
                                                              int tag, const Room& room) {
  at::Tensor place = room();
  Pending work = exchange(send, place, peer, tag);
  return std::make_shared<ReceivedInRoom>(std::move(place), std::move(work));
}

std::shared_ptr<PendingReceived> Communicator::sum_views(const at::Tensor& send, const Room& room) {
  at::Tensor place = room();
  place.copy_(send);
  Pending work = all_reduce_sum(place);
  return std::make_shared<ReceivedInRoom>(std::move(place), std::move(work));
}

std::shared_ptr<Communicator> make_single_worker() { return std::make_shared<SingleWorker>(); }

}  // namespace decent
