#pragma once
// The base of communicators that change some calls of another one and pass on the rest.

#include <memory>
#include <utility>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// Passes every call on to `group`, also calls that have a default. Classes that wrap a group
/// derive from it, so that a new function of Communicator needs a line only here.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(std::shared_ptr<Communicator> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  Pending all_reduce_sum(const at::Tensor& tensor) override {
    return group_->all_reduce_sum(tensor);
  }
  Pending broadcast(const at::Tensor& tensor, int root) override {
    return group_->broadcast(tensor, root);
  }
  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    return group_->exchange(send, receive, peer, tag);
  }
  bool reads_in_place(int peer) const override { return group_->reads_in_place(peer); }
  at::Tensor memory_to_send(std::int64_t bytes) override { return group_->memory_to_send(bytes); }
  void wait_until_read(const at::Tensor& memory) override { group_->wait_until_read(memory); }
  std::shared_ptr<PendingReceived> exchange_views(const at::Tensor& send, int peer, int tag,
                                                  const Room& room) override {
    return group_->exchange_views(send, peer, tag, room);
  }
  std::shared_ptr<PendingReceived> sum_views(const at::Tensor& send, const Room& room) override {
    return group_->sum_views(send, room);
  }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    return group_->subgroup(members);
  }
  void barrier() override { group_->barrier(); }
  std::unique_ptr<TimedEvent> timed_event(const at::Tensor& tensor) override {
    return group_->timed_event(tensor);
  }
  void connect_pairs(const std::vector<int>& peers) override { group_->connect_pairs(peers); }
  void drain(const std::function<bool()>& give_up) override { group_->drain(give_up); }
  bool go_on_without(const std::shared_ptr<LostWorkers>& lost) override {
    return group_->go_on_without(lost);
  }

 protected:
  Communicator& group() const { return *group_; }

 private:
  std::shared_ptr<Communicator> group_;
};

}  // namespace decent
