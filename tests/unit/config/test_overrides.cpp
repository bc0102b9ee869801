// --set a.b=VALUE.

#include <gmock/gmock.h>

#include "support.h"

namespace decent {
namespace {

using test::kData;
using test::kModel;
using test::kSmallest;
using test::parse;
using test::refusal;
using test::refusal_of;
using ::testing::HasSubstr;

TEST(Overrides, ReplaceMakeAndNest) {
  const Recipe recipe = parse(
      kSmallest + "train: {steps: 3}\n",
      {"train.steps=null", "train.epochs=4", "log.every_steps=2", "model.inputs=[a,b]",
       "data.eval={format: builtin, name: digits, split: test}", "optimizer={lr: 0.5, name: sgd}"});
  EXPECT_EQ(recipe.train.steps, std::nullopt);
  EXPECT_EQ(recipe.train.epochs, 4);
  EXPECT_EQ(recipe.log.every_steps, 2);
  EXPECT_EQ(recipe.model.inputs, (std::vector<ModelInput>{{"", "a"}, {"", "b"}}));
  EXPECT_EQ(recipe.data.eval->options.get<std::string>("split"), "test");
  EXPECT_EQ(recipe.optimizer.name, "sgd");
  EXPECT_EQ(recipe.optimizer.lr, 0.5);
}

TEST(Overrides, LaterOnesWin) {
  EXPECT_EQ(parse(kSmallest, {"seed=1", "seed=2"}).seed, 2);
  EXPECT_EQ(parse(kSmallest, {"train.steps=1", "train={epochs: 3}"}).train.steps, std::nullopt);
  EXPECT_EQ(parse(kSmallest, {"train={epochs: 3}", "train.steps=1"}).train.epochs, 3);
}

TEST(Overrides, ValuesMayHoldEqualsSignsAndNothing) {
  EXPECT_EQ(parse(kSmallest, {"name=a=b"}).name, "a=b");
  EXPECT_EQ(
      parse(kSmallest + "eval: {every_epochs: 2}\n", {"eval.every_epochs="}).eval.every_epochs,
      std::nullopt);
}

TEST(Overrides, ReachIntoSourcesAndThroughNull) {
  const Recipe recipe = parse(kModel + "data: {train: {format: safetensors}, eval: null}\n",
                              {"data.train.path=/d/x.safetensors", "data.eval.format=builtin",
                               "data.eval.name=digits", "data.eval.split=test"});
  EXPECT_EQ(recipe.data.train.options.get<Paths>("path").at(0), "/d/x.safetensors");
  EXPECT_EQ(recipe.data.eval->options.get<std::string>("name"), "digits");
}

TEST(Overrides, MakeAWholeRecipe) {
  const Recipe recipe = parse("seed: 1\n", {"model.path=/m.pt", "data.train.format=builtin",
                                            "data.train.name=digits", "data.train.split=train"});
  EXPECT_EQ(recipe.model.path, "/m.pt");
  EXPECT_EQ(recipe.data.train.options.get<std::string>("name"), "digits");
}

TEST(Overrides, AReplacedMistakeIsGone) {
  EXPECT_EQ(parse(kSmallest + "seed: x\n", {"seed=4"}).seed, 4);
  EXPECT_EQ(parse(kSmallest + "name: ${UNSET}\n", {"name=b"}).name, "b");
  EXPECT_EQ(parse(kSmallest + "train: 3\n", {"train={steps: 2}"}).train.steps, 2);
}

TEST(Overrides, MistakesNameTheOverride) {
  EXPECT_EQ(refusal_of("train.stepz=3"),
            "--set train.stepz=3: train.stepz: unknown key; did you mean 'steps'?");
  EXPECT_EQ(refusal_of("trian.steps=3"),
            "--set trian.steps=3: trian: unknown key; did you mean 'train'?");
  EXPECT_EQ(refusal_of("train.steps=three"),
            "--set train.steps=three: train.steps: expected an integer >= 1 or null, got 'three'");
  EXPECT_EQ(refusal_of("train.steps.x=3"),
            "--set train.steps.x=3: train.steps: expected an integer >= 1 or null, got a mapping");
  EXPECT_EQ(refusal_of("optimizer={lr: 1, lr: 2}"),
            "--set optimizer={lr: 1, lr: 2}: optimizer.lr: duplicate key");
  EXPECT_EQ(
      refusal_of("data.eval={format: builtin, name: digits}"),
      "--set data.eval={format: builtin, name: digits}: data.eval.split: missing; expected one "
      "of train, test");
}

// The override is not to blame for what the file lacks.
TEST(Overrides, WhatAMadeSectionLacksIsTheFilesMistake) {
  EXPECT_EQ(refusal(kData, {"model.target=t"}),
            "run.yaml:1:1: model.path: missing; expected a path");
}

TEST(Overrides, Malformed) {
  EXPECT_EQ(refusal_of("foo"), "--set foo: no '='; expected section.key=VALUE");
  for (const std::string text : {"=3", ".=3", "a..b=3", ".a=3", "a.=3"}) {
    EXPECT_EQ(refusal_of(text),
              "--set " + text + ": a part of the key is empty; expected section.key=VALUE");
  }
  EXPECT_THAT(refusal_of("seed=[1"), HasSubstr("--set seed=[1: not valid YAML: "));
  EXPECT_THAT(refusal_of("seed=a: b: c"), HasSubstr("--set seed=a: b: c: not valid YAML: "));
  EXPECT_THAT(refusal_of("seed=1\n---\n2"), HasSubstr("more text after the end"));
  std::string deep = "a";
  for (int i = 0; i < 1000; ++i) deep += ".a";
  EXPECT_THAT(refusal_of(deep + "=1"), HasSubstr("no key has this many parts"));
}

TEST(Overrides, ThroughAValue) {
  EXPECT_EQ(refusal(kSmallest + "train: {steps: 3}\n", {"train.steps.x=3"}),
            "--set train.steps.x=3: train.steps is '3', which has no keys");
  EXPECT_EQ(refusal(kSmallest + "optimizer: {betas: [0.1, 0.2]}\n", {"optimizer.betas.0=3"}),
            "--set optimizer.betas.0=3: optimizer.betas is [0.1, 0.2], which has no keys");
}

}  // namespace
}  // namespace decent
