#include "decent/comm/gloo.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "decent/comm/address.h"
#include "decent/comm/group_text.h"
#include "decent/comm/lost_workers.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

// What the groups of a worker have in common.
struct GlooRun {
  GlooOptions options;
  std::shared_ptr<LostWorkers> lost;  // null: nobody goes on without a lost worker
};

// Ends the waits for work that a lost worker takes part in.
class Interruption {
 public:
  explicit Interruption(const std::vector<Work>& works) : works_(works) {
    for (const Work& work : works_) {
      if (is_collective(work))
        work->getFuture()->addCallback([state = state_](auto&) { state->end(/*gives_up=*/false); });
    }
  }

  void give_up() {
    state_->end(/*gives_up=*/true);
    for (const Work& work : works_) {
      if (!is_collective(work)) work->abort();
    }
  }

  // c10d's wait() for a collective operation ends only with the operation.
  void wait() {
    for (const Work& work : works_) {
      if (is_collective(work) && !state_->wait()) throw PeerLost("given up");
      if (!work->wait()) throw PeerLost("given up");
    }
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    bool given_up = false;

    void end(bool gives_up) {
      const std::lock_guard lock(mutex);
      if (!ended) given_up = gives_up;
      ended = true;
      changed.notify_all();
    }
    // Returns whether the operation has ended by itself.
    bool wait() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return ended; });
      return !given_up;
    }
  };

  static bool is_collective(const Work& work) {
    const c10d::OpType type = work->retrieveOpType();
    return type != c10d::OpType::SEND && type != c10d::OpType::RECV;
  }

  const std::vector<Work>& works_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class GlooPending : public PendingWork {
 public:
  // `ranks`: the workers of the operation.
  GlooPending(std::string what, std::vector<Work> works, std::shared_ptr<LostWorkers> lost,
              std::vector<int> ranks)
      : what_(std::move(what)),
        works_(std::move(works)),
        lost_(std::move(lost)),
        ranks_(std::move(ranks)) {}

  void wait() override {
    const bool has_come = lost_ && lost_->any() && has_succeeded();
    unless_lost(has_come ? nullptr : lost_.get(), ranks_, [this] {
      try {
        wait_for_works();
      } catch (const std::exception& error) {
        throw PeerLost(what_ + " failed: " + first_line(error));
      }
    });
    works_.clear();
  }

  bool done() override { return std::ranges::all_of(works_, &GlooPending::is_done); }

 private:
  static bool is_done(const Work& work) { return work->isCompleted(); }

  bool has_succeeded() {
    return done() && std::ranges::none_of(
                         works_, [](const Work& each) { return each->exception() != nullptr; });
  }

  void wait_for_works() {
    if (!lost_ || has_succeeded()) {
      for (const Work& work : works_) work->wait();
      return;
    }
    Interruption interruption(works_);
    const LostWorkers::Watch watch(*lost_, ranks_, [&] { interruption.give_up(); });
    interruption.wait();
  }

  std::string what_;  // for the error message: which operation of which group
  std::vector<Work> works_;
  std::shared_ptr<LostWorkers> lost_;
  std::vector<int> ranks_;
};

// gloo's point-to-point and broadcast only move bytes; its tables of element types are incomplete.
// The view keeps the tensor alive for as long as gloo may write to it.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return at::from_blob(
      tensor.data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, [tensor](void*) {},
      at::kByte);
}

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> make_options(const GlooOptions& options) {
  auto result = c10d::ProcessGroupGloo::Options::create(options.timeout);
  for (const std::string& name : options.interfaces) {
    try {
      result->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name));
    } catch (const std::exception&) {
      refuse_interface(name);
    }
  }
  if (result->devices.empty()) {
    result->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.address));
  }
  return result;
}

class GlooCommunicator : public Communicator {
 public:
  // `ranks`: this group's members as ranks of the whole run, for names and messages.
  GlooCommunicator(c10::intrusive_ptr<c10d::Store> store, std::vector<int> ranks, int rank,
                   std::shared_ptr<GlooRun> run)
      : store_(std::move(store)), ranks_(std::move(ranks)), rank_(rank), run_(std::move(run)) {
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
          store_, rank_, static_cast<int>(ranks_.size()), make_options(run_->options));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw PeerLost("cannot connect workers " + name() + ": " + first_line(error));
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  Pending all_reduce_sum(const at::Tensor& tensor) override {
    return collective("all-reduce", [&]() -> std::vector<Work> {
      if (tensor.numel() == 0) return {};
      std::vector<at::Tensor> tensors = {tensor};
      return {group_->allreduce(tensors)};
    });
  }

  Pending broadcast(const at::Tensor& tensor, int root) override {
    return collective("broadcast", [&]() -> std::vector<Work> {
      if (tensor.numel() == 0) return {};
      std::vector<at::Tensor> tensors = {as_bytes(tensor)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      return {group_->broadcast(tensors, options)};
    });
  }

  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    const int other = ranks_[static_cast<std::size_t>(peer)];
    const std::string what =
        "exchange of worker " + own_rank() + " with worker " + std::to_string(other);
    return start(what, {other}, [&] {
      std::vector<at::Tensor> out = {as_bytes(send)};
      std::vector<at::Tensor> in = {as_bytes(receive)};
      std::vector<Work> works = {group_->recv(in, peer, tag)};
      works.push_back(group_->send(out, peer, tag));
      return works;
    });
  }

  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::vector<int> ranks;
    int own = -1;
    for (int member : members) {
      if (member == rank_) own = static_cast<int>(ranks.size());
      ranks.push_back(ranks_.at(static_cast<std::size_t>(member)));
    }
    if (own < 0) throw std::logic_error("subgroup(): called by a worker that is no member");
    if (ranks.size() == 1) return make_single_worker();
    // The group's own keys on the store, also if the same members make another group.
    const std::string key = "group/" + rank_list(ranks) + "/" + std::to_string(made_[ranks]++);
    return std::make_shared<GlooCommunicator>(c10::make_intrusive<c10d::PrefixStore>(key, store_),
                                              std::move(ranks), own, run_);
  }

  bool go_on_without(const std::shared_ptr<LostWorkers>& lost) override {
    run_->lost = lost;
    return true;
  }

  void barrier() override {
    collective("barrier", [&] { return std::vector<Work>{group_->barrier()}; })->wait();
  }

 private:
  std::string own_rank() const { return std::to_string(ranks_[static_cast<std::size_t>(rank_)]); }

  std::string name() const { return rank_list(ranks_); }

  // Posts an operation, which fails at once if the connection is closed already.
  template <typename Post>
  Pending start(const std::string& what, const std::vector<int>& ranks, const Post& post) const {
    return unless_lost(run_->lost.get(), ranks, [&]() -> Pending {
      try {
        return std::make_unique<GlooPending>(what, post(), run_->lost, ranks);
      } catch (const std::exception& error) {
        throw PeerLost(what + " failed: " + first_line(error));
      }
    });
  }

  template <typename Post>
  Pending collective(const std::string& operation, const Post& post) const {
    return start(operation + " of worker " + own_rank() + " with workers " + name(), ranks_, post);
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<int> ranks_;
  int rank_;
  std::shared_ptr<GlooRun> run_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::map<std::vector<int>, int> made_;  // how many subgroups of these members
};

}  // namespace

std::shared_ptr<Communicator> connect_gloo(c10d::Store& store, int rank, int size,
                                           const GlooOptions& options) {
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(i);
  auto shared = c10::intrusive_ptr<c10d::Store>::reclaim_copy(&store);
  return std::make_shared<GlooCommunicator>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", std::move(shared)), std::move(ranks), rank,
      std::make_shared<GlooRun>(GlooRun{.options = options, .lost = nullptr}));
}

}  // namespace decent
