// What a recipe has that does not say it.

#include "support.h"

namespace decent {
namespace {

using test::kSmallest;
using test::parse;

// The values of the structs are in docs/recipe.md, whose tables Reference.IsWhatTheDocumentSays
// compares with the schema.
TEST(Defaults, AreThoseOfTheStructsButForWhatFollowsFromOtherKeys) {
  const Recipe recipe = parse(kSmallest);
  Recipe expected;
  expected.name = "run";  // the stem of the file
  expected.output = "runs/run";
  expected.model.path = "/recipes/m.pt";
  expected.data.train = recipe.data.train;
  expected.train.epochs = 1;
  expected.optimizer.weight_decay = 0.1;
  expected.model.loss_options = usual_options(test::kNames.losses);
  expected.parallel.exchange_options = usual_options(test::kNames.exchanges);
  EXPECT_EQ(recipe, expected) << print_recipe(recipe);
}

TEST(Defaults, OutputFollowsName) {
  EXPECT_EQ(parse("name: mine\n" + kSmallest).output, "runs/mine");
  EXPECT_EQ(parse("name: mine\noutput: out\n" + kSmallest).output, "out");
}

TEST(Defaults, EpochsStayOpenWhereStepsAreGiven) {
  const TrainRecipe train = parse(kSmallest + "train: {steps: 7}\n").train;
  EXPECT_EQ(train.epochs, std::nullopt);
  EXPECT_EQ(train.steps, 7);
}

TEST(Defaults, WeightDecayDependsOnTheOptimizer) {
  EXPECT_EQ(parse(kSmallest, {"optimizer.name=adam"}).optimizer.weight_decay, 0.0);
  EXPECT_EQ(parse(kSmallest, {"optimizer.name=sgd"}).optimizer.weight_decay, 0.0);
  EXPECT_EQ(parse(kSmallest, {"optimizer.name=nadamw"}).optimizer.weight_decay, 0.0);
  EXPECT_EQ(parse(kSmallest, {"optimizer.weight_decay=null"}).optimizer.weight_decay, 0.1);
  EXPECT_EQ(parse(kSmallest, {"optimizer.weight_decay=0"}).optimizer.weight_decay, 0.0);
}

TEST(Defaults, BetasMomentumAndEpsDependOnTheOptimizer) {
  const auto optimizer = [](std::vector<std::string> overrides) {
    const Recipe recipe = parse(kSmallest, overrides);
    EXPECT_EQ(parse(print_recipe(recipe)), recipe);  // what is resolved is not resolved again
    return recipe.optimizer;
  };
  const auto option = [&](const std::string& name, std::vector<std::string> overrides) {
    return optimizer(std::move(overrides)).options.value(name);
  };
  using Betas = std::array<double, 2>;
  EXPECT_EQ(option("betas", {"optimizer.name=lion"}), OptionValue(Betas{0.9, 0.99}));
  EXPECT_EQ(option("betas", {"optimizer.name=lion", "optimizer.betas=[0.9, 0.999]"}),
            OptionValue(Betas{0.9, 0.999}));
  EXPECT_EQ(optimizer({"optimizer.name=lion"}).weight_decay, 0.0);
  EXPECT_EQ(option("momentum", {"optimizer.name=rmsprop"}), OptionValue(0.0));
  EXPECT_EQ(option("momentum", {"optimizer.name=rmsprop", "optimizer.momentum=0.5"}),
            OptionValue(0.5));
  EXPECT_EQ(option("momentum", {"optimizer.name=sgd"}), OptionValue(0.9));
  EXPECT_EQ(option("eps", {"optimizer.name=adagrad"}), OptionValue(1e-10));
  EXPECT_EQ(option("eps", {"optimizer.name=radam"}), OptionValue(1e-8));
  EXPECT_EQ(option("betas", {"optimizer.name=sgd"}), OptionValue(Betas{0.9, 0.999}));
}

}  // namespace
}  // namespace decent
