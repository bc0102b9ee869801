// Other programs' names for our keys: the table itself, and what it makes of a recipe and of flags.

#include "decent/config/foreign_names.h"

#include <gmock/gmock.h>

#include <set>

#include "decent/config/schema.h"
#include "support.h"

namespace decent {
namespace {

using config::flag_advice;
using config::foreign_names;
using config::recipe_keys;
using test::kSmallest;
using test::refusal;
using test::refusal_of;

// All dotted keys, and the sections that they are in.
std::set<std::string> keys_and_sections() {
  std::set<std::string> names;
  for (const config::KeyInfo& key : recipe_keys()) {
    names.insert(key.name);
    names.insert(key.name.substr(0, key.name.find('.')));
  }
  return names;
}

TEST(ForeignNames, LeadToKeysThatThereAre) {
  const std::set<std::string> valid = keys_and_sections();
  for (const config::ForeignName& row : foreign_names()) {
    const bool led = row.ours.empty() ? !row.note.empty() : valid.contains(std::string(row.ours));
    EXPECT_TRUE(led) << row.theirs << " -> " << row.ours;
  }
}

TEST(ForeignNames, AreSpelledAsTheyAreLookedForAndOnce) {
  std::set<std::string> seen;
  for (const config::ForeignName& row : foreign_names()) {
    const std::string name(row.theirs);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), name.npos) << name;
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_EQ(config::find_foreign_name(name), &row);
  }
}

TEST(ForeignNames, AreNotKeysThemselves) {
  std::set<std::string> last_parts;
  for (const config::KeyInfo& key : recipe_keys()) {
    last_parts.insert(key.name.substr(key.name.rfind('.') + 1));
  }
  for (const config::ForeignName& row : foreign_names()) {
    EXPECT_FALSE(last_parts.contains(std::string(row.theirs))) << row.theirs;
  }
}

TEST(ForeignNames, NameOurKeyInTheRightSectionOfARecipe) {
  EXPECT_EQ(refusal(kSmallest + "train: {max_epochs: 3}\n"),
            "run.yaml:3:9: train.max_epochs: unknown key; here it is 'train.epochs'");
  EXPECT_EQ(refusal(kSmallest + "learning_rate: 0.1\n"),
            "run.yaml:3:1: learning_rate: unknown key; here it is 'optimizer.lr'");
}

TEST(ForeignNames, NameATransformForAKeyOfItsOwn) {
  EXPECT_EQ(refusal(kSmallest + "train: {cutmix_alpha: 1}\n"),
            "run.yaml:3:9: train.cutmix_alpha: unknown key; here it is 'data.transforms', a list, "
            "which may end with {cutmix: ALPHA}");
}

TEST(ForeignNames, NameOurKeyFromTheWrongSection) {
  EXPECT_EQ(refusal(kSmallest + "train: {learning_rate: 0.1}\n"),
            "run.yaml:3:9: train.learning_rate: unknown key; here it is 'optimizer.lr'");
  EXPECT_EQ(refusal(kSmallest + "optimizer: {max-grad-norm: 1}\n"),
            "run.yaml:3:13: optimizer.max-grad-norm: unknown key; here it is "
            "'parallel.grad_clip_norm'");
}

TEST(ForeignNames, LeadFromAFlagOfTorchToTheNamesThatHaveIt) {
  EXPECT_EQ(refusal(kSmallest + "optimizer: {decoupled_weight_decay: true}\n"),
            "run.yaml:3:13: optimizer.decoupled_weight_decay: unknown key; here it is "
            "'optimizer.name', where adamw, nadamw and radamw decouple the decay");
}

TEST(ForeignNames, NameOurKeyOfAnOverride) {
  EXPECT_EQ(refusal_of("learning_rate=0.1"),
            "--set learning_rate=0.1: learning_rate: unknown key; here it is 'optimizer.lr'");
}

TEST(ForeignNames, SayWhatToDoWhereTheRecipeHasNoSuchKey) {
  EXPECT_EQ(refusal_of("world_size=4"),
            "--set world_size=4: world_size: unknown key; the number of workers is a flag, "
            "--workers N, or is set by the launcher (torchrun --nproc-per-node N decent-train ..)");
}

TEST(ForeignNames, SayThatAKeyIsInNoSection) {
  EXPECT_EQ(refusal(kSmallest + "train: {seed: 3}\n"),
            "run.yaml:3:9: train.seed: unknown key here; did you mean 'seed' at the top?");
  EXPECT_EQ(refusal(kSmallest + "log: {log_dir: x}\n"),
            "run.yaml:3:7: log.log_dir: unknown key; here it is 'output' at the top");
}

TEST(ForeignNames, LeaveAMisspelledKeyOfAnotherSectionToItsNearest) {
  EXPECT_EQ(refusal(kSmallest + "epoch: 3\n"),
            "run.yaml:3:1: epoch: unknown key here; did you mean 'train.epochs'?");
}

TEST(FlagAdvice, NamesTheKeyOfTheRecipe) {
  EXPECT_EQ(flag_advice("--lr", test::kNames),
            "it is a key of the recipe: --set optimizer.lr=VALUE");
  EXPECT_EQ(flag_advice("--batch-size", test::kNames),
            "it is a key of the recipe: --set data.batch_size=VALUE");
  EXPECT_EQ(flag_advice("--optimizer.lr", test::kNames),
            "it is a key of the recipe: --set optimizer.lr=VALUE");
  EXPECT_EQ(flag_advice("--num-epochs", test::kNames),
            "it is a key of the recipe: --set train.epochs=VALUE");
  EXPECT_EQ(flag_advice("--output", test::kNames), "it is a key of the recipe: --set output=VALUE");
  EXPECT_THAT(flag_advice("--every-steps", test::kNames).value_or(""),
              ::testing::AllOf(::testing::HasSubstr("--set eval.every_steps=VALUE or "),
                               ::testing::HasSubstr("--set log.every_steps=VALUE")));
  EXPECT_THAT(flag_advice("--nproc_per_node", test::kNames).value_or(""),
              ::testing::HasSubstr("torchrun"));
}

TEST(FlagAdvice, SaysNothingOfWhatIsNoKey) {
  for (const char* flag : {"--confg", "-h", "--", "-", "--zebra", "--print_config"}) {
    EXPECT_EQ(flag_advice(flag, test::kNames), std::nullopt) << flag;
  }
}

}  // namespace
}  // namespace decent
