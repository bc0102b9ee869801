#pragma once
// What one worker sees and sends of its buckets, recorded by step and bucket: a communicator that
// notes messages and an update that notes weights before and after mixing.

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/optim/bucket_update.h"
#include "tensor_files.h"

namespace decent::parity {

/// Of the step that is being done. Names are "<what>.<step>.<bucket>", with more behind it for
/// messages.
class Record {
 public:
  void begin_step(std::int64_t step) {
    step_ = step;
    updated_ = 0;
  }
  /// Buckets are updated in their order.
  std::size_t next_bucket() { return updated_++; }

  void add(const std::string& what, std::size_t bucket, const at::Tensor& tensor) {
    tensors_[name(what, bucket)] = tensor.clone();
  }
  /// The bytes of a message, numbered from 0 for each peer.
  void add_message(std::size_t bucket, int peer, const at::Tensor& tensor) {
    const std::string to = name("sent", bucket) + "." + std::to_string(peer) + ".";
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    int number = 0;
    while (tensors_.contains(to + std::to_string(number))) ++number;
    tensors_[to + std::to_string(number)] =
        at::from_blob(tensor.data_ptr(), {bytes}, at::kByte).clone();
  }
  /// NaN where there is none.
  void add_wrap_share(std::optional<double> share) {
    tensors_["wrap_share." + std::to_string(step_)] =
        at::scalar_tensor(share.value_or(std::numeric_limits<double>::quiet_NaN()), at::kDouble);
  }
  const Named& tensors() const { return tensors_; }

 private:
  std::string name(const std::string& what, std::size_t bucket) const {
    return what + "." + std::to_string(step_) + "." + std::to_string(bucket);
  }

  std::int64_t step_ = 0;
  std::size_t updated_ = 0;
  Named tensors_;
};

/// Passes everything on, and notes what exchange() sends. A message's tag is its bucket's number
/// times the number of phases, plus that of its phase (Meeting::tag).
class RecordingCommunicator : public Communicator {
 public:
  RecordingCommunicator(std::shared_ptr<Communicator> inner, std::shared_ptr<Record> record,
                        std::vector<int> ranks, std::size_t phases)
      : inner_(std::move(inner)),
        record_(std::move(record)),
        ranks_(std::move(ranks)),
        phases_(phases) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Pending all_reduce_sum(const at::Tensor& tensor) override {
    return inner_->all_reduce_sum(tensor);
  }
  Pending broadcast(const at::Tensor& tensor, int root) override {
    return inner_->broadcast(tensor, root);
  }
  Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer, int tag) override {
    record_->add_message(static_cast<std::size_t>(tag) / phases_,
                         ranks_[static_cast<std::size_t>(peer)], send);
    return inner_->exchange(send, receive, peer, tag);
  }
  std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) override {
    std::vector<int> ranks;
    for (const int member : members) ranks.push_back(ranks_[static_cast<std::size_t>(member)]);
    return std::make_shared<RecordingCommunicator>(inner_->subgroup(members), record_, ranks,
                                                   phases_);
  }
  void barrier() override { inner_->barrier(); }

 private:
  std::shared_ptr<Communicator> inner_;
  std::shared_ptr<Record> record_;
  std::vector<int> ranks_;  // of the members in the world
  std::size_t phases_;
};

/// Mixes, notes weights before ("x") and after it ("z"), and leaves the rest to another update.
class RecordingUpdate : public BucketUpdate {
 public:
  RecordingUpdate(std::unique_ptr<BucketUpdate> inner, std::shared_ptr<Record> record)
      : inner_(std::move(inner)), record_(std::move(record)) {}

  const std::vector<std::string>& state_names() const override { return inner_->state_names(); }
  bool steps_bounded_by_lr() const override { return inner_->steps_bounded_by_lr(); }

  void apply(const BucketStep& step) const override {
    const std::size_t bucket = record_->next_bucket();
    const auto type = step.scalar == Scalar::float32 ? at::kFloat : at::kDouble;
    const at::Tensor x = at::from_blob(step.x, {step.numel}, type);
    record_->add("x", bucket, x);
    mix(step.x, step.numel, step.scalar, step.mixing, step.kernels);
    record_->add("z", bucket, x);
    BucketStep update = step;
    update.mixing = {};
    inner_->apply(update);
  }

 private:
  std::unique_ptr<BucketUpdate> inner_;
  std::shared_ptr<Record> record_;
};

}  // namespace decent::parity
