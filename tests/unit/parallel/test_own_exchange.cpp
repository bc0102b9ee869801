// An exchange of the user's own, which no file of the library knows: chosen by a name or by a
// function, and going on from a checkpoint with what it remembers.

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/exchange/pending_exchanges.h"
#include "training.h"

namespace decent {
namespace {

using testing::Settings;

// Pairs send each other weights rounded to bfloat16, and what rounding took away from one message
// is added to the next (error feedback, arXiv 1901.09847).
class ErrorFeedback : public Exchange {
 public:
  explicit ErrorFeedback(const ExchangeSetup& setup)
      : communicator_(setup.communicator),
        buckets_(setup.buckets),
        meetings_(setup),
        pending_(setup) {
    for (const at::Tensor& x : buckets_) {
      messages_.push_back({.own = at::empty_like(x, x.options().dtype(at::kBFloat16)),
                           .peers = at::empty_like(x, x.options().dtype(at::kBFloat16)),
                           .difference = at::empty_like(x),
                           .error = at::zeros_like(x)});
    }
  }

  void start(std::size_t bucket, std::int64_t step) override {
    const Meeting& meeting = meetings_.after_step(step);
    if (meeting.alone()) return;
    const Message& message = messages_[bucket];
    message.own.copy_(buckets_[bucket] + message.error);
    pending_.start(bucket, meeting, static_cast<std::int64_t>(message.own.nbytes()), [&] {
      return communicator_->exchange(message.own, message.peers, meeting.peers[0],
                                     static_cast<int>(bucket));
    });
  }

  Mixing wait(std::size_t bucket) override {
    const Meeting* meeting = pending_.finish(bucket);
    if (meeting == nullptr) return {};
    const Message& message = messages_[bucket];
    message.error.add_(buckets_[bucket]).sub_(message.own);
    message.difference.copy_(message.peers).sub_(message.own);
    ++exchanges_;
    Mixing mixing = meeting->weights(gamma());
    mixing.self = 1;
    mixing.received = message.difference.const_data_ptr();
    return mixing;
  }

  std::optional<Received> peek(std::size_t) override { return std::nullopt; }
  void settle() override { pending_.settle(); }
  void drop() override { pending_.drop(); }

  NamedTensors state() const override {
    NamedTensors state;
    for (std::size_t b = 0; b < messages_.size(); ++b)
      state.emplace_back("error." + std::to_string(b), messages_[b].error);
    state.emplace_back("exchanges", at::scalar_tensor(exchanges_, at::kLong));
    return state;
  }
  void restore(const NamedTensors& state) override {
    EXPECT_EQ(state.size(), messages_.size() + 1);
    EXPECT_EQ(state.back().first, "exchanges");
    exchanges_ = state.back().second.item<std::int64_t>();
  }

 private:
  struct Message {
    at::Tensor own, peers;  // bfloat16
    at::Tensor difference;
    at::Tensor error;  // what the messages so far lack
  };

  std::shared_ptr<Communicator> communicator_;
  std::vector<at::Tensor> buckets_;
  Meetings meetings_;
  PendingExchanges pending_;
  std::vector<Message> messages_;  // by bucket
  std::int64_t exchanges_ = 0;
};

std::unique_ptr<Exchange> make_own(const ExchangeSetup& setup) {
  return std::make_unique<ErrorFeedback>(setup);
}

Settings settings() {
  return {.workers = 3, .topology = make_topology("ring", 3, 1), .bucket_mb = 3e-4};
}

// Trains to step 9, from step 4 on with new objects, which are given what `keep` lets through.
testing::Models train_resumed(const std::function<bool(const std::string& name)>& keep) {
  const testing::Problem problem = testing::perceptron();
  return testing::run_workers(3, [&](const testing::Worker& world) {
    DecentralizedOptions options = settings().options();
    options.exchange = make_own;
    NamedTensors saved;
    {
      std::vector<at::Tensor> x = problem.parameters();
      DecentralizedParameters first(testing::named(x), {}, world, options);
      for (std::int64_t t = 1; t <= 4; ++t) problem.loss(x, world->rank(), t).backward();
      for (const auto& [name, tensor] : first.training_state())
        saved.emplace_back(name, tensor.detach().clone());
      first.global_avg(false);
    }
    std::vector<at::Tensor> x = problem.parameters(/*seed=*/5);
    DecentralizedParameters second(testing::named(x), {}, world, options);
    const NamedTensors state = second.training_state();
    EXPECT_EQ(state.size(), saved.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      EXPECT_EQ(state[i].first, saved[i].first);
      const at::NoGradGuard no_grad;
      if (keep(state[i].first)) at::Tensor(state[i].second).copy_(saved[i].second);
    }
    second.resume_from(4, state);
    for (std::int64_t t = 5; t <= 9; ++t) problem.loss(x, world->rank(), t).backward();
    std::vector<at::Tensor> result = testing::copies(x);
    result.push_back(second.training_state().back().second);
    second.global_avg(false);
    return result;
  });
}

testing::Models train_straight(ExchangeChoice exchange) {
  const testing::Problem problem = testing::perceptron();
  return testing::run_workers(3, [&](const testing::Worker& world) {
    DecentralizedOptions options = settings().options();
    options.exchange = exchange;
    std::vector<at::Tensor> x = problem.parameters();
    DecentralizedParameters parallel(testing::named(x), {}, world, options);
    for (std::int64_t t = 1; t <= 9; ++t) problem.loss(x, world->rank(), t).backward();
    std::vector<at::Tensor> result = testing::copies(x);
    result.push_back(parallel.training_state().back().second);
    parallel.global_avg(false);
    return result;
  });
}

TEST(OwnExchange, GoesOnFromACheckpointBitForBit) {
  const testing::Models straight = train_straight(make_own);
  testing::expect_same_bits(train_resumed([](const std::string&) { return true; }), straight);
  // Two buckets or more, two of three meetings each, in the 8 steps that mix.
  EXPECT_GE(straight[0].back().item<std::int64_t>(), 2 * 5);
}

TEST(OwnExchange, NeedsWhatItRemembers) {
  const testing::Models straight = train_straight(make_own);
  const testing::Models forgetful =
      train_resumed([](const std::string& name) { return !name.starts_with("exchange.error."); });
  for (std::size_t rank = 0; rank < 3; ++rank)
    EXPECT_FALSE(at::equal(forgetful[rank][0], straight[rank][0]));
}

TEST(OwnExchange, IsChosenByItsNameOnceItIsRegistered) {
  EXPECT_THROW(ExchangeChoice("error-feedback"), UserError);
  register_exchange({.name = "error-feedback", .make = make_own});
  EXPECT_THAT(exchange_names(),
              ::testing::ElementsAre("fp32", "bf16", "modulo2", "modulo4", "error-feedback"));
  testing::expect_same_bits(train_straight("error-feedback"), train_straight(make_own));
}

}  // namespace
}  // namespace decent
