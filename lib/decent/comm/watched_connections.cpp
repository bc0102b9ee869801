#include "decent/comm/watched_connections.h"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "decent/comm/forwarding.h"

namespace decent {
namespace {

class WatchedCommunicator : public ForwardingCommunicator {
 public:
  WatchedCommunicator(std::shared_ptr<Communicator> group, Connecting connecting)
      : ForwardingCommunicator(std::move(group)), connecting_(std::move(connecting)) {}

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    return watch_connections([&] { return group().subgroup(members); }, connecting_);
  }
  void connect_pairs(const std::vector<int>& peers) override {
    connecting_([&] { group().connect_pairs(peers); });
  }

 private:
  Connecting connecting_;
};

}  // namespace

void watch(std::chrono::duration<double> most, const std::function<void()>& too_late,
           const std::function<void()>& work) {
  std::mutex mutex;
  std::condition_variable_any never;
  const std::jthread thread([&](const std::stop_token& over) {
    std::unique_lock lock(mutex);
    never.wait_for(lock, over, most, [] { return false; });
    if (!over.stop_requested()) too_late();
  });
  work();
}

std::shared_ptr<Communicator> watch_connections(
    const std::function<std::shared_ptr<Communicator>()>& connect, Connecting connecting) {
  std::shared_ptr<Communicator> group;
  connecting([&] { group = connect(); });
  return std::make_shared<WatchedCommunicator>(std::move(group), std::move(connecting));
}

}  // namespace decent
