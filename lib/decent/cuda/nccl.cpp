// NCCL between GPUs, through c10d::ProcessGroupNCCL.
//
// A group has one NCCL communicator, connected when the group is made, and one stream, on which its
// operations follow each other. Starting an operation makes that stream wait for the caller's
// stream; waiting for it makes the caller's stream wait for that one.
//
// Peers that die or fall silent are the control plane's business (comm/control/control.h), which
// ends the process. NCCL's own timeouts are off, and so is c10d's own handling of errors
// (silence_c10d_warnings). If NCCL reports an error while all peers are alive, a thread here passes
// it on within 0.1 s.

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "decent/comm/bounded.h"
#include "decent/comm/cuda_functions.h"
#include "decent/comm/group_text.h"
#include "decent/comm/nccl_error.h"
#include "decent/core/error.h"
#include "decent/cuda/error_watch.h"
#include "decent/cuda/exports.h"
#include "decent/cuda/timed_event.h"

namespace decent {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;
using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

constexpr auto kForever = std::chrono::hours(24);
constexpr auto kAbortTimeout = std::chrono::seconds(10);  // NCCL's abort has been seen to hang
constexpr auto kLookAgain = std::chrono::milliseconds(1);

class NcclPending : public PendingWork {
 public:
  NcclPending(std::string what, Work work, Group group, c10::Device device)
      : what_(std::move(what)), work_(std::move(work)), group_(std::move(group)), device_(device) {}

  void wait() override {
    try {
      work_->wait();
    } catch (const std::exception& error) {
      throw_nccl_error(what_ + " failed", error);
    }
    check();
  }

  // Polls, because c10d's way to block the host also blocks the stream.
  void wait_on_host() override {
    const c10::cuda::CUDAGuard device(device_);
    while (!work_->isCompleted()) {
      check();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    check();
  }

  bool done() override {
    const c10::cuda::CUDAGuard device(device_);
    return work_->isCompleted();
  }

 private:
  void check() const {
    if (group_->getError() == c10d::ErrorType::SUCCESS) return;
    const std::exception_ptr known = work_->exception();
    if (known == nullptr) throw PeerLost(what_ + " failed: NCCL reported an error");
    try {
      std::rethrow_exception(known);
    } catch (const std::exception& error) {
      throw_nccl_error(what_ + " failed", error);
    }
  }

  std::string what_;  // for the error message: which operation of which group
  Work work_;
  Group group_;
  c10::Device device_;  // a thread that has chosen none would make itself a context on GPU 0
};

class NothingPending : public PendingWork {
 public:
  void wait() override {}
  bool done() override { return true; }
};

// A view of the tensor's bytes, because NCCL's table of element types is incomplete, and only sums
// need the type. The view shares the tensor's memory and keeps it alive. Any dense strides will do.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return tensor.detach().as_strided({tensor.numel()}, {1}).view(at::kByte);
}

// Groups several operations into one; otherwise two peers that both send first could wait for each
// other. Ends the NCCL group even if an operation cannot be started.
template <typename Start>
Work as_one(c10d::ProcessGroupNCCL& group, const Start& start) {
  group.startCoalescing();
  try {
    start();
  } catch (...) {
    try {
      group.endCoalescing();
    } catch (...) {  // the first error says more
    }
    throw;
  }
  return group.endCoalescing();
}

// Handles whatever goes wrong while the GPUs of `ranks` are being connected.
template <typename Step>
auto connecting(const std::vector<int>& ranks, const Step& step) {
  try {
    return step();
  } catch (const std::exception& error) {
    throw_nccl_error("cannot connect the GPUs of workers " + rank_list(ranks) + " by NCCL", error);
  }
}

// The groups that a communicator shares with all communicators made from it. They live until the
// last of these is gone, because ending a group cuts off operations that are still under way to a
// peer, and none is certain to be over until the barrier at the end of the run.
class NcclGroups {
 public:
  NcclGroups(const std::function<void(const std::string&)>& on_error, c10::Device device)
      : watch_(on_error, device) {}

  // Does not involve the peers, which may be gone.
  ~NcclGroups() {
    for (const Group& group : groups_) watch_.remove(group);
    done_within(kAbortTimeout, [groups = std::move(groups_)] {
      for (const Group& group : groups) group->abort();
    });
  }
  NcclGroups(const NcclGroups&) = delete;
  NcclGroups& operator=(const NcclGroups&) = delete;

  void add(const Group& group, const std::string& name) {
    groups_.push_back(group);
    watch_.add(group, name);
  }

 private:
  ErrorWatch watch_;
  std::vector<Group> groups_;
};

class NcclCommunicator : public Communicator {
 public:
  // `ranks`: this group's members as ranks of the whole run, for names and messages.
  NcclCommunicator(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<Communicator> host,
                   std::vector<int> ranks, c10::Device device, std::shared_ptr<NcclGroups> groups)
      : store_(std::move(store)),
        host_(std::move(host)),
        ranks_(std::move(ranks)),
        device_(device),
        groups_(std::move(groups)) {
    connecting(ranks_, [&] {
      group_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(store_, rank(), size(), options());
      group_->setBoundDeviceId(device_);
      group_->eagerConnectSingleDevice(device_);
    });
    groups_->add(group_, "NCCL between the GPUs of workers " + name());
    // NCCL makes the connections of a kind of operation when the first one starts.
    complete(*all_reduce_sum(at::zeros({1}, at::TensorOptions(device_))));
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  Pending all_reduce_sum(const at::Tensor& tensor) override {
    if (!tensor.is_cuda()) return host_->all_reduce_sum(tensor);
    return start(tensor, with_all("all-reduce"), [&] {
      std::vector<at::Tensor> tensors = {tensor.detach()};
      return group_->allreduce(tensors);
    });
  }

  Pending broadcast(const at::Tensor& tensor, int root) override {
    if (!tensor.is_cuda()) return host_->broadcast(tensor, root);
    return start(tensor, with_all("broadcast"), [&] {
      std::vector<at::Tensor> tensors = {as_bytes(tensor)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      return group_->broadcast(tensors, options);
    });
  }

  // NCCL has no tags: exchanges with a peer must start in the same order on both sides, and
  // exchanges with several peers in an order without a circle. The order of buckets, and of the
  // ranks in an edge, satisfies both.
  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    if (!send.is_cuda()) return host_->exchange(send, receive, peer, tag);
    const std::string other = std::to_string(ranks_[static_cast<std::size_t>(peer)]);
    return start(send, "exchange of worker " + own_rank() + " with worker " + other, [&] {
      std::vector<at::Tensor> out = {as_bytes(send)};
      std::vector<at::Tensor> in = {as_bytes(receive)};
      return as_one(*group_, [&] {
        group_->recv(in, peer, tag);
        group_->send(out, peer, tag);
      });
    });
  }

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::shared_ptr<Communicator> host = host_->subgroup(members);
    if (host->size() == 1) return host;
    std::vector<int> ranks;
    for (int member : members) ranks.push_back(ranks_.at(static_cast<std::size_t>(member)));
    // The group gets keys of its own on the store, even if the same members have made a group
    // before.
    const std::string key = "group/" + rank_list(ranks) + "/" + std::to_string(made_[ranks]++);
    return std::make_shared<NcclCommunicator>(c10::make_intrusive<c10d::PrefixStore>(key, store_),
                                              std::move(host), std::move(ranks), device_, groups_);
  }

  void barrier() override { host_->barrier(); }

  std::unique_ptr<TimedEvent> timed_event(const at::Tensor& tensor) override {
    if (!tensor.is_cuda()) return host_->timed_event(tensor);
    return std::make_unique<CudaTimedEvent>(device_.index());
  }

  // One operation for all pairs, so that members may list them in any order.
  void connect_pairs(const std::vector<int>& peers) override {
    if (peers.empty()) return;
    const at::Tensor byte = at::zeros({1}, at::TensorOptions(device_).dtype(at::kByte));
    const at::Tensor rooms = at::empty({std::ssize(peers), 1}, byte.options());
    complete(*start(byte, "connecting worker " + own_rank() + " with its peers by NCCL", [&] {
      return as_one(*group_, [&] {
        for (std::size_t i = 0; i < peers.size(); ++i) {
          std::vector<at::Tensor> in = {rooms[static_cast<std::int64_t>(i)]};
          std::vector<at::Tensor> out = {byte};
          group_->recv(in, peers[i], 0);
          group_->send(out, peers[i], 0);
        }
      });
    }));
  }

  // Everything that was waited for comes before this in the current stream.
  void drain(const std::function<bool()>& give_up) override {
    const c10::cuda::CUDAGuard device(device_);
    at::cuda::CUDAEvent now;
    now.record();
    while (!now.query() && !give_up()) std::this_thread::sleep_for(kLookAgain);
  }

 private:
  static c10::intrusive_ptr<c10d::ProcessGroupNCCL::Options> options() {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = kForever;
    options->config.blocking = 1;  // the connection is complete when the call returns
    return options;
  }

  static void complete(PendingWork& work) {
    work.wait();
    work.wait_on_host();
  }

  template <typename Post>
  Pending start(const at::Tensor& tensor, const std::string& what, const Post& post) const {
    if (tensor.numel() == 0) return std::make_unique<NothingPending>();
    try {
      return std::make_unique<NcclPending>(what, post(), group_, device_);
    } catch (const std::exception& error) {
      throw_nccl_error(what + " failed", error);
    }
  }

  std::string with_all(const std::string& operation) const {
    return operation + " of worker " + own_rank() + " with workers " + name();
  }
  std::string own_rank() const { return std::to_string(ranks_[static_cast<std::size_t>(rank())]); }
  std::string name() const { return rank_list(ranks_); }

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<Communicator> host_;
  std::vector<int> ranks_;
  c10::Device device_;
  std::shared_ptr<NcclGroups> groups_;
  Group group_;
  std::map<std::vector<int>, int> made_;  // how many subgroups of these members
};

}  // namespace
}  // namespace decent

extern "C" DECENT_CUDA_EXPORT void decent_cuda_connect_nccl(
    c10d::Store* store, const std::shared_ptr<decent::Communicator>* host,
    const std::function<void(const std::string&)>* on_error,
    std::shared_ptr<decent::Communicator>* result) {
  using namespace decent;
  std::vector<int> ranks;
  for (int i = 0; i < (*host)->size(); ++i) ranks.push_back(i);
  if (ranks.size() == 1) {
    *result = *host;
    return;
  }
  // NCCL allocates memory itself, and LibTorch would not give back its reserved memory for that.
  connecting(ranks, [] { c10::cuda::CUDACachingAllocator::emptyCache(); });
  const c10::Device device(c10::kCUDA,
                           connecting(ranks, [] { return c10::cuda::current_device(); }));
  auto shared = c10::intrusive_ptr<c10d::Store>::reclaim_copy(store);
  *result = std::make_shared<NcclCommunicator>(
      c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(shared)), *host, std::move(ranks),
      device, std::make_shared<NcclGroups>(*on_error, device));
}
