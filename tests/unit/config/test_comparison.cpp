// Which keys workers may give differently, and what a change of each does when a run goes on: the
// whole lists, so that a key that is added or changed is decided on here.

#include <gmock/gmock.h>

#include "decent/config/keys.h"
#include "support.h"

namespace decent {
namespace {

using config::KeyInfo;
using config::OnResume;
using config::recipe_keys;
using ::testing::UnorderedElementsAreArray;

// Paths, what is written and said, how fast data is read, and what other topics of the comparison
// say better.
const std::vector<std::string> kAside = {"name",
                                         "output",
                                         "model.path",
                                         "model.weights",
                                         "model.lora",
                                         "model.device",
                                         "data.train",
                                         "data.eval",
                                         "data.predict",
                                         "data.prefetch",
                                         "data.threads",
                                         "log.every_steps",
                                         "log.progress",
                                         "log.tensorboard",
                                         "log.trace",
                                         "log.track",
                                         "parallel.backend",
                                         "parallel.link_mbit",
                                         "parallel.timeout_s",
                                         "parallel.stall_s",
                                         "parallel.farewell_s",
                                         "parallel.local_world_size"};

template <class Wanted>
std::vector<std::string> keys_that(const Wanted& wanted) {
  std::vector<std::string> names;
  for (const KeyInfo& key : recipe_keys())
    if (wanted(key)) names.push_back(key.name);
  return names;
}

TEST(Comparison, OfWorkersLeavesOutWhatDoesNotShapeTraining) {
  EXPECT_THAT(keys_that([](const KeyInfo& key) { return key.may_differ; }),
              UnorderedElementsAreArray(kAside));
}

TEST(Comparison, ARunThatGoesOnKeepsItsOptimizerAndItsOrderOfData) {
  EXPECT_THAT(keys_that([](const KeyInfo& key) { return key.on_resume == OnResume::same; }),
              UnorderedElementsAreArray({"optimizer.name", "data.batch_size", "data.batch_tokens",
                                         "train.grad_accumulation", "data.shuffle", "data.sampling",
                                         "seed"}));
}

TEST(Comparison, ARunThatGoesOnTellsOfAllButWhatDoesNotShapeTraining) {
  std::vector<std::string> silent = kAside;
  silent.push_back("checkpoint.allow_missing");
  silent.push_back("model.export_mode");
  silent.push_back("parallel.topology");  // its phases are compared
  silent.push_back("parallel.topology_otherwise");
  EXPECT_THAT(keys_that([](const KeyInfo& key) { return key.on_resume == OnResume::silent; }),
              UnorderedElementsAreArray(silent));
}

// The learning rates are compared as they come out, with the number of steps that they fall over.
TEST(Comparison, WhatDecidesWhatNearCopiesAreSent) {
  EXPECT_THAT(
      keys_that([](const KeyInfo& key) { return key.shapes_exchange; }),
      UnorderedElementsAreArray({"model.freeze", "model.unfreeze", "optimizer.param_groups",
                                 "parallel.bucket_mb", "parallel.gamma", "parallel.comm_dtype",
                                 "parallel.comm_dtype_within", "parallel.slices", "parallel.*"}));
}

// What the metrics of one model say of one sample.
TEST(Comparison, WhatDecidesWhatMetricsMean) {
  EXPECT_THAT(keys_that([](const KeyInfo& key) { return key.changes_measure; }),
              UnorderedElementsAreArray({"model.target", "model.output", "model.loss", "model.*",
                                         "model.ignore_index", "model.class_dim",
                                         "model.loss_weights", "data.eval_transforms"}));
}

// Whoever compares two runs need not know the rows.
TEST(Comparison, KeysOfRowsAreKnownByTheirSection) {
  const KeyInfo key = config::find_key("model.label_smoothing").value();
  EXPECT_TRUE(key.changes_measure && !key.shapes_exchange && key.fallback.empty());
  EXPECT_TRUE(config::find_key("parallel.modulo_range").value().of_averaging);
  EXPECT_EQ(
      config::find_key("model.label_smoothing", config::recipe_keys(test::kNames)).value().fallback,
      "0");
}

TEST(Comparison, KeysAreFoundByTheirDottedNames) {
  EXPECT_EQ(config::find_key("optimizer.lr").value().fallback, "0.001");
  EXPECT_EQ(config::find_key("lr"), std::nullopt);
  EXPECT_EQ(config::find_key("train.other"), std::nullopt);
  EXPECT_EQ(config::find_key("parameter weight"), std::nullopt);
}

}  // namespace
}  // namespace decent
