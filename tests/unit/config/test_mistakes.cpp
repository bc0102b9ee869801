// What is said of mistakes, where, and that all are said together.

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

TEST(Mistakes, AllAreReportedTogetherByPosition) {
  const std::string text =
      "optimizer:\n"
      "  lrr: 1\n"
      "  betas: [0.9, 1.5]\n"
      "data:\n"
      "  train: {format: builtin, name: digits}\n"
      "  batch_size: abc\n"
      "  batch_size: 2\n"
      "model:\n"
      "  loss: cross_entrpy\n"
      "train:\n"
      "  epochs: 3.0\n";
  EXPECT_EQ(refusal(text, {"log.every_step=3", "seed=-1"}),
            "10 mistakes in run.yaml:\n"
            "run.yaml:2:3: optimizer.lrr: unknown key; did you mean 'lr'?\n"
            "run.yaml:3:16: optimizer.betas: expected a number in [0, 1), got '1.5'\n"
            "run.yaml:5:3: data.train.split: missing; expected one of train, test\n"
            "run.yaml:6:15: data.batch_size: expected an integer >= 1, got 'abc'\n"
            "run.yaml:7:3: data.batch_size: duplicate key\n"
            "run.yaml:8:1: model.path: missing; expected a path\n"
            "run.yaml:9:9: model.loss: expected one of cross_entropy, nll, mse, l1, huber, "
            "bce_with_logits, output, got 'cross_entrpy'; did "
            "you mean 'cross_entropy'?\n"
            "run.yaml:11:11: train.epochs: expected an integer >= 1 or null, got '3.0'\n"
            "--set log.every_step=3: log.every_step: unknown key; did you mean 'every_steps'?\n"
            "--set seed=-1: seed: expected an integer >= 0, got '-1'");
}

TEST(Mistakes, OneHasNoHeadline) {
  EXPECT_EQ(refusal("seed: x\n" + kSmallest),
            "run.yaml:1:7: seed: expected an integer >= 0, got 'x'");
}

TEST(Mistakes, MissingSectionsAreReportedAtTheStart) {
  EXPECT_EQ(refusal("seed: 1\n"),
            "2 mistakes in run.yaml:\n"
            "run.yaml:1:1: model.path: missing; expected a path\n"
            "run.yaml:1:1: data.train: missing; expected a source such as {format: builtin, name: "
            "digits, split: train}");
}

TEST(Mistakes, AnUnknownKeyWithoutANearOneListsTheSection) {
  EXPECT_EQ(refusal(kSmallest + "train:\n  zebra: 1\n"),
            "run.yaml:4:3: train.zebra: unknown key; valid: epochs, steps, grad_accumulation, "
            "stop");
}

TEST(Mistakes, AKeyInTheWrongSectionIsSentToTheRightOne) {
  EXPECT_EQ(refusal(kSmallest + "batch_size: 3\n"),
            "run.yaml:3:1: batch_size: unknown key here; did you mean 'data.batch_size'?");
}

TEST(Mistakes, AMisspelledSectionIsOneMistake) {
  EXPECT_EQ(refusal(kSmallest + "optimiser: {lr: 1}\n"),
            "run.yaml:3:1: optimiser: unknown key; did you mean 'optimizer'?");
}

TEST(Mistakes, DuplicateSections) {
  EXPECT_EQ(refusal(kSmallest + "model: {path: b.pt}\n"), "run.yaml:3:1: model: duplicate key");
}

TEST(Mistakes, ASectionThatIsNoMapping) {
  const std::string expected =
      "train: expected a mapping of epochs, steps, grad_accumulation, stop, got ";
  EXPECT_EQ(refusal(kSmallest + "train: 3\n"), "run.yaml:3:8: " + expected + "'3'");
  EXPECT_EQ(refusal(kSmallest + "train: [1]\n"), "run.yaml:3:8: " + expected + "[1]");
  EXPECT_EQ(refusal(kSmallest + "train:\nseed: 1\n"), "run.yaml:3:1: " + expected + "null");
}

TEST(Mistakes, MergeKeysAreRefused) {
  EXPECT_THAT(refusal(kSmallest + "train: {<<: {steps: 3}}\n"),
              HasSubstr("3:9: YAML's merge key << is not used in recipes"));
}

TEST(Mistakes, IntegersAreStrict) {
  for (const std::string value :
       {"3.0", "'3'", "\"3\"", "!!str 3", "true", "0x3", "3 4", "--3", "+-3", "1_000",
        "9223372036854775808", "1e3", ".inf", "[3]", "3x"}) {
    EXPECT_THAT(refusal_of("data.batch_size=" + value), HasSubstr("expected an integer >= 1"));
  }
  EXPECT_EQ(parse(kSmallest, {"data.batch_size=+3"}).data.batch_size.usual, 3);
}

TEST(Mistakes, BatchSizesOfHostsAndRanks) {
  const auto message = [](const std::string& value) {
    const std::string given = "data.batch_size=" + value;
    return refusal_of(given).substr(("--set " + given + ": ").size());
  };
  EXPECT_EQ(message("[3]"),
            "data.batch_size: expected an integer >= 1 or {default: .., hosts: .., ranks: ..}, "
            "got [3]");
  EXPECT_EQ(message("{default: 0}"), "data.batch_size.default: expected an integer >= 1, got '0'");
  EXPECT_EQ(message("{hosts: {slow: 0}}"),
            "data.batch_size.hosts.slow: expected an integer >= 1, got '0'");
  EXPECT_EQ(message("{hosts: 3}"),
            "data.batch_size.hosts: expected a mapping of integers >= 1, got '3'");
  EXPECT_EQ(message("{hosts: {a: 3, a: 4}}"), "data.batch_size.hosts.a: duplicate key");
  EXPECT_EQ(message("{hosts: {'': 3}}"), "data.batch_size.hosts: expected a name");
  for (const std::string rank : {"-1", "1.5", "03", "x"}) {
    EXPECT_EQ(message("{ranks: {" + rank + ": 3}}"),
              "data.batch_size.ranks: expected ranks such as 0 or 3, got '" + rank + "'");
  }
  EXPECT_THAT(message("{host: {slow: 1}}"), HasSubstr("did you mean 'hosts'?"));
}

TEST(Mistakes, NumbersAreStrict) {
  for (const std::string value : {"'1'", "true", ".inf", "-.inf", ".nan", "nan", "inf", "infinity",
                                  "1e999", "1,5", "0x1p3", "1e", "++1", "''", "1 2", "[1]"}) {
    EXPECT_THAT(refusal_of("optimizer.lr=" + value), HasSubstr("expected a number > 0"));
  }
  const std::vector<std::pair<std::string, double>> good = {
      {"1e-3", 1e-3}, {"1", 1}, {".5", 0.5}, {"5.", 5}, {"+2E+1", 20}, {"1e308", 1e308}};
  for (const auto& [text, number] : good) {
    EXPECT_EQ(parse(kSmallest, {"optimizer.lr=" + text}).optimizer.lr, number) << text;
  }
}

TEST(Mistakes, BoolsAreYaml12) {
  for (const std::string value : {"yes", "on", "1", "'true'", "tRue", "null", "[true]"}) {
    EXPECT_THAT(refusal_of("data.shuffle=" + value), HasSubstr("expected true or false"));
  }
  for (const std::string value : {"true", "True", "TRUE"}) {
    EXPECT_TRUE(parse(kSmallest, {"data.shuffle=" + value}).data.shuffle);
  }
  for (const std::string value : {"false", "False", "FALSE"}) {
    EXPECT_FALSE(parse(kSmallest, {"data.shuffle=" + value}).data.shuffle);
  }
}

TEST(Mistakes, TextsArePlainOrQuoted) {
  EXPECT_EQ(parse(kSmallest, {"name=3"}).name, "3");
  EXPECT_EQ(parse(kSmallest, {"name='null'"}).name, "null");
  EXPECT_EQ(parse(kSmallest, {"name=true"}).name, "true");
  for (const std::string value : {"null", "~", "", "''", "\"a\\0b\""}) {
    EXPECT_THAT(refusal_of("name=" + value), HasSubstr("name: expected a text")) << value;
  }
}

TEST(Mistakes, ValuesAreShownShortAndOnOneLine) {
  const std::string message = refusal_of("seed=\"a\\n\\e" + std::string(500, 'b') + "\"");
  EXPECT_THAT(message, HasSubstr("got \"a??bbb"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), 300U);
}

TEST(Mistakes, ThousandsAreCutShort) {
  std::string text = kSmallest;
  for (int i = 0; i < 1000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::string message = refusal(text);
  EXPECT_THAT(message, HasSubstr("1000 mistakes in run.yaml:"));
  EXPECT_THAT(message, HasSubstr("\nand 900 more"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 101);
}

TEST(Mistakes, TheExitCodeIsTheUsers) {
  try {
    parse("seed: x\n");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::user_error);
  }
}

}  // namespace
}  // namespace decent
