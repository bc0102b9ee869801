#include "decent/comm/gloo.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <utility>

#include "decent/core/error.h"

namespace decent {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

std::string short_reason(const std::exception& error) {
  std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

class GlooPending : public PendingWork {
 public:
  GlooPending(std::string what, std::vector<Work> works)
      : what_(std::move(what)), works_(std::move(works)) {}

  void wait() override {
    try {
      for (const Work& work : works_) work->wait();
    } catch (const std::exception& error) {
      throw PeerLost(what_ + " failed: " + short_reason(error));
    }
    works_.clear();
  }

  bool done() override {
    for (const Work& work : works_) {
      if (!work->isCompleted()) return false;
    }
    return true;
  }

 private:
  std::string what_;  // for the error message: which operation of which group
  std::vector<Work> works_;
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
    } catch (const std::exception& error) {
      throw UserError("GLOO_SOCKET_IFNAME: cannot use the network interface '" + name +
                      "': " + short_reason(error));
    }
  }
  if (result->devices.empty()) {
    result->devices.push_back(options.loopback
                                  ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                  : c10d::ProcessGroupGloo::createDefaultDevice());
  }
  return result;
}

class GlooCommunicator : public Communicator {
 public:
  // `ranks`: this group's members as ranks of the whole run, for names and messages.
  GlooCommunicator(c10::intrusive_ptr<c10d::Store> store, std::vector<int> ranks, int rank,
                   const GlooOptions& options)
      : store_(std::move(store)), ranks_(std::move(ranks)), rank_(rank), options_(options) {
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>("gloo/" + name(), store_);
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(prefixed, rank_, size(),
                                                           make_options(options));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw PeerLost("cannot connect workers " + name() + ": " + short_reason(error));
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  Pending all_reduce_sum(const at::Tensor& tensor) override {
    if (tensor.numel() == 0) return pending("all-reduce", {});
    std::vector<at::Tensor> tensors = {tensor};
    return pending("all-reduce", {group_->allreduce(tensors)});
  }

  Pending broadcast(const at::Tensor& tensor, int root) override {
    if (tensor.numel() == 0) return pending("broadcast", {});
    std::vector<at::Tensor> tensors = {as_bytes(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return pending("broadcast", {group_->broadcast(tensors, options)});
  }

  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    std::vector<at::Tensor> out = {as_bytes(send)};
    std::vector<at::Tensor> in = {as_bytes(receive)};
    const std::string other = std::to_string(ranks_[static_cast<std::size_t>(peer)]);
    return std::make_unique<GlooPending>(
        "exchange of worker " + own_rank() + " with worker " + other,
        std::vector<Work>{group_->recv(in, peer, tag), group_->send(out, peer, tag)});
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
    return std::make_shared<GlooCommunicator>(store_, std::move(ranks), own, options_);
  }

  void barrier() override { pending("barrier", {group_->barrier()})->wait(); }

 private:
  std::string own_rank() const { return std::to_string(ranks_[static_cast<std::size_t>(rank_)]); }

  std::string name() const {
    std::string text;
    for (int rank : ranks_) text += (text.empty() ? "" : ",") + std::to_string(rank);
    return text;
  }

  Pending pending(const std::string& operation, std::vector<Work> works) const {
    return std::make_unique<GlooPending>(
        operation + " of worker " + own_rank() + " with workers " + name(), std::move(works));
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<int> ranks_;
  int rank_;
  GlooOptions options_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

}  // namespace

std::shared_ptr<Communicator> connect_gloo(c10d::Store& store, int rank, int size,
                                           const GlooOptions& options) {
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(i);
  auto shared = c10::intrusive_ptr<c10d::Store>::reclaim_copy(&store);
  return std::make_shared<GlooCommunicator>(std::move(shared), std::move(ranks), rank, options);
}

}  // namespace decent
