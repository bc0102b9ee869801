#include "decent/comm/by_place.h"

#include <map>
#include <utility>

#include "decent/comm/forwarding.h"

namespace decent {
namespace {

// Sums over all members still go through `all`.
class MachinesCommunicator : public ForwardingCommunicator {
 public:
  MachinesCommunicator(std::shared_ptr<Communicator> all, std::shared_ptr<Communicator> local,
                       const std::vector<int>& local_members)
      : ForwardingCommunicator(std::move(all)), local_(std::move(local)) {
    for (const int member : local_members)
      local_number_.emplace(member, static_cast<int>(local_number_.size()));
  }

  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    if (!is_local(peer)) return group().exchange(send, receive, peer, tag);
    return local_->exchange(send, receive, local_number_.at(peer), tag);
  }

  bool reads_in_place(int peer) const override {
    return is_local(peer) && local_->reads_in_place(local_number_.at(peer));
  }
  at::Tensor memory_to_send(std::int64_t bytes) override { return local_->memory_to_send(bytes); }
  void wait_until_read(const at::Tensor& memory) override { local_->wait_until_read(memory); }

  std::shared_ptr<PendingReceived> exchange_views(const at::Tensor& send, int peer, int tag,
                                                  const Room& room) override {
    if (!is_local(peer)) return group().exchange_views(send, peer, tag, room);
    return local_->exchange_views(send, local_number_.at(peer), tag, room);
  }

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::vector<int> in_local;  // numbers in local_
    std::vector<int> in_new;    // the same members' numbers in the new group
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto found = local_number_.find(members[i]);
      if (found == local_number_.end()) continue;
      in_local.push_back(found->second);
      in_new.push_back(static_cast<int>(i));
    }
    if (in_local.size() == members.size()) return local_->subgroup(in_local);
    auto made = group().subgroup(members);
    if (in_local.size() < 2) return made;
    return by_place(std::move(made), local_->subgroup(in_local), std::move(in_new));
  }

  void connect_pairs(const std::vector<int>& peers) override {
    std::vector<int> near;
    std::vector<int> far;
    for (const int peer : peers) {
      if (is_local(peer)) near.push_back(local_number_.at(peer));
      if (!is_local(peer)) far.push_back(peer);
    }
    local_->connect_pairs(near);
    group().connect_pairs(far);
  }
  void drain(const std::function<bool()>& give_up) override {
    local_->drain(give_up);
    group().drain(give_up);
  }
  bool go_on_without(const std::shared_ptr<LostWorkers>& lost) override {
    return local_->go_on_without(lost) && group().go_on_without(lost);
  }

 private:
  bool is_local(int peer) const { return local_number_.contains(peer); }

  std::shared_ptr<Communicator> local_;
  std::map<int, int> local_number_;  // from numbers in group() to those in local_
};

}  // namespace

std::shared_ptr<Communicator> by_place(std::shared_ptr<Communicator> all,
                                       std::shared_ptr<Communicator> local,
                                       std::vector<int> local_members) {
  return std::make_shared<MachinesCommunicator>(std::move(all), std::move(local), local_members);
}

}  // namespace decent
