// One worker's copy of a model: what becomes of it when it is taken over, and the average.

#include "decent/parallel/replica.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../support/workers.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/named_tensors.h"
#include "problem.h"

namespace decent {
namespace {

constexpr int kThree = 3;

at::Tensor filled(double value, bool trained = false) {
  return at::full({2, 3}, value, at::kDouble).set_requires_grad(trained);
}

// A model whose every number is the worker's rank, or more.
struct Model {
  explicit Model(int rank)
      : trained{{"a", filled(rank, true)}, {"b", filled(10.0 + rank, true)}},
        frozen{{"c", filled(20.0 + rank).t()}},
        buffers{{"d", filled(30.0 + rank)}} {}

  Replica replica(const testing::Worker& world, const ReplicaOptions& options = {}) const {
    return Replica(trained, frozen, buffers, world, options);
  }

  NamedTensors trained, frozen, buffers;
};

std::unique_ptr<Exchange> exchange_of(const Replica& replica, const testing::Worker& world) {
  return ExchangeChoice("fp32").make({.communicator = world,
                                      .phases = make_topology("complete", world->size(), 1),
                                      .buckets = flat_tensors(replica.buckets())});
}

TEST(Replica, StartsWithTheValuesOfRank0) {
  testing::run_workers(kThree, [](const testing::Worker& world) {
    const Model model(world->rank());
    const Replica replica = model.replica(world);
    EXPECT_EQ(replica.buckets().size(), 1U);
    EXPECT_EQ(replica.parameter_count(), 12);
    EXPECT_TRUE(at::equal(model.trained[0].second, filled(0)));
    EXPECT_TRUE(at::equal(model.trained[1].second, filled(10)));
    EXPECT_TRUE(at::equal(model.frozen[0].second, filled(20).t()));
    EXPECT_TRUE(at::equal(model.buffers[0].second, filled(30)));
    EXPECT_TRUE(model.trained[0].second.storage().is_alias_of(replica.buckets()[0].x.storage()));
    return testing::Nothing();
  });
}

TEST(Replica, HasBucketsOfTheSizeThatIsAskedFor) {
  const Model model(0);
  EXPECT_EQ(model.replica(make_single_worker(), {.bucket_mb = 1e-6}).buckets().size(), 2U);
}

TEST(Replica, NoticesWhatIsPutElsewhere) {
  const Model model(0);
  const Replica replica = model.replica(make_single_worker());
  EXPECT_EQ(replica.misplaced(), std::nullopt);
  model.trained[1].second.set_data(filled(5));
  EXPECT_EQ(replica.misplaced(), "b");
}

TEST(Replica, TellsAutogradOfEveryWrite) {
  const Model model(0);
  Replica replica = model.replica(make_single_worker());
  const at::Tensor& a = model.trained[0].second;
  a.mutable_grad() = filled(1);
  const auto before = a._version();
  replica.written();
  EXPECT_EQ(a._version(), before + 1);
  EXPECT_TRUE(a.grad().defined());
  replica.written(0);
  replica.release_gradient(0);
  EXPECT_EQ(a._version(), before + 2);
  EXPECT_FALSE(a.grad().defined());
}

// A worker's own weights, as an update would have left them.
void write_own(const Model& model, int rank) {
  for (const auto& [name, tensor] : model.trained) tensor.detach().add_(rank);
  model.buffers[0].second.add_(rank);
}

TEST(Replica, GoesToTheAverageAndBack) {
  testing::run_workers(kThree, [](const testing::Worker& world) {
    const Model model(0);
    Replica replica = model.replica(world);
    const auto exchange = exchange_of(replica, world);
    write_own(model, world->rank());
    exchange->start(0, 1);
    // Ranks 0, 1, 2: of 6 + 6 parameters each, one away from the mean for two of three workers.
    const auto distance = replica.average(exchange.get(), true, true);
    EXPECT_DOUBLE_EQ(distance.value(), std::sqrt((12.0 + 0 + 12) / 3));
    EXPECT_TRUE(replica.averaged());
    EXPECT_TRUE(at::equal(model.trained[0].second, filled(1)));
    EXPECT_TRUE(at::equal(model.buffers[0].second, filled(31)));
    replica.revert();
    EXPECT_FALSE(replica.averaged());
    EXPECT_TRUE(at::equal(model.trained[0].second, filled(world->rank())));
    EXPECT_TRUE(at::equal(model.buffers[0].second, filled(30.0 + world->rank())));
    EXPECT_TRUE(exchange->wait(0).mixes());  // what came is still there
    return testing::Nothing();
  });
}

TEST(Replica, DropsTheExchangeWhereItStaysWithTheAverage) {
  testing::run_workers(kThree, [](const testing::Worker& world) {
    const Model model(0);
    Replica replica = model.replica(world, {.average_buffers = false});
    const auto exchange = exchange_of(replica, world);
    write_own(model, world->rank());
    exchange->start(0, 1);
    EXPECT_EQ(replica.average(exchange.get(), false, false), std::nullopt);
    EXPECT_FALSE(replica.averaged());
    EXPECT_TRUE(at::equal(model.trained[0].second, filled(1)));
    EXPECT_TRUE(at::equal(model.buffers[0].second, filled(30)));  // rank 0's
    EXPECT_EQ(exchange->wait(0).received, nullptr);
    EXPECT_THROW(replica.revert(), std::logic_error);
    return testing::Nothing();
  });
}

TEST(TensorNames, AreThoseOfCheckpoints) {
  const Model model(0);
  const NamedTensors tensors = model_tensors(model.trained, model.buffers);
  std::vector<std::string> names;
  for (const auto& entry : tensors) names.push_back(entry.first);
  EXPECT_THAT(names, ::testing::ElementsAre("model.a", "model.b", "buffer.d"));
  EXPECT_EQ(optimizer_tensor_name("a", "exp_avg"), "optimizer.a.exp_avg");
  EXPECT_EQ(update_count_name("a"), "optimizer.a.step");
  const NamedTensors part = part_of(tensors, kBufferPrefix);
  ASSERT_EQ(part.size(), 1U);
  EXPECT_EQ(part[0].first, "d");
  EXPECT_TRUE(part[0].second.is_same(model.buffers[0].second));
}

}  // namespace
}  // namespace decent
