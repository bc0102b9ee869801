#include "decent/comm/watched_connections.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace decent {
namespace {

class WatchedCommunicator : public Communicator {
 public:
  WatchedCommunicator(std::shared_ptr<Communicator> group, Connecting connecting)
      : group_(std::move(group)), connecting_(std::move(connecting)) {}

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
  void barrier() override { group_->barrier(); }
  void drain(const std::function<bool()>& give_up) override { group_->drain(give_up); }

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    return watch_connections([&] { return group_->subgroup(members); }, connecting_);
  }
  void connect_pairs(const std::vector<int>& peers) override {
    connecting_([&] { group_->connect_pairs(peers); });
  }

 private:
  std::shared_ptr<Communicator> group_;
  Connecting connecting_;
};

}  // namespace

void watch(std::chrono::duration<double> most, const std::function<void()>& too_late,
           const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::thread thread([&] {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, most, [&] { return over; })) return;
    lock.unlock();
    too_late();
  });
  const auto end = [&] {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_one();
    thread.join();
  };
  try {
    work();
  } catch (...) {
    end();
    throw;
  }
  end();
}

std::shared_ptr<Communicator> watch_connections(
    const std::function<std::shared_ptr<Communicator>()>& connect, Connecting connecting) {
  std::shared_ptr<Communicator> group;
  connecting([&] { group = connect(); });
  return std::make_shared<WatchedCommunicator>(std::move(group), std::move(connecting));
}

}  // namespace decent
