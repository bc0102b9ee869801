// ${NAME} and ${NAME:-default} in values.

#include <gmock/gmock.h>

#include <cstdlib>

#include "support.h"

namespace decent {
namespace {

using test::kSmallest;
using test::parse;
using test::refusal;
using ::testing::HasSubstr;

std::string name_of_run(const std::string& value, std::map<std::string, std::string> environment) {
  return parse("name: " + value + "\n" + kSmallest, {}, std::move(environment)).name;
}

TEST(EnvironmentVariables, AreReplaced) {
  EXPECT_EQ(name_of_run("${A}", {{"A", "b"}}), "b");
  EXPECT_EQ(name_of_run("x-${A}-${_B2}-y", {{"A", "1"}, {"_B2", "2"}}), "x-1-2-y");
  EXPECT_EQ(name_of_run("'${A}'", {{"A", "b"}}), "b");
  EXPECT_EQ(name_of_run("\"${A}\"", {{"A", "b"}}), "b");
}

TEST(EnvironmentVariables, NamedOftenAreRefused) {
  const std::map<std::string, std::string> large = {{"A", std::string(120'000, 'x')}};
  std::string in_one;
  std::string in_many;
  for (int i = 0; i < 1000; ++i) {
    in_one += "${A}";
    in_many += "- \"${A}\"\n";
  }
  constexpr const char* kMessage = "environment variables make the recipe larger than 16 MiB";
  EXPECT_THAT(refusal("name: " + in_one + "\n" + kSmallest, {}, large), HasSubstr(kMessage));
  EXPECT_THAT(refusal(kSmallest + "model.inputs:\n" + in_many, {}, large), HasSubstr(kMessage));
}

TEST(EnvironmentVariables, DefaultsStandInForUnsetAndEmpty) {
  EXPECT_EQ(name_of_run("${A:-d}", {}), "d");
  EXPECT_EQ(name_of_run("${A:-d}", {{"A", ""}}), "d");
  EXPECT_EQ(name_of_run("${A:-d}", {{"A", "a"}}), "a");
  EXPECT_EQ(name_of_run("x${A:-}", {}), "x");
  EXPECT_EQ(name_of_run("${A:-a:-b}", {}), "a:-b");
}

TEST(EnvironmentVariables, APlainResultIsTypedAndAQuotedOneIsText) {
  EXPECT_EQ(parse(kSmallest, {"data.batch_size=${B:-32}"}).data.batch_size.usual, 32);
  EXPECT_EQ(parse(kSmallest, {"data.batch_size=${B}"}, {{"B", "8"}}).data.batch_size.usual, 8);
  EXPECT_EQ(parse(kSmallest, {"data.shuffle=${B}"}, {{"B", "false"}}).data.shuffle, false);
  EXPECT_EQ(parse(kSmallest, {"eval.every_epochs=${B:-}"}).eval.every_epochs, std::nullopt);
  EXPECT_EQ(parse(kSmallest, {"eval.every_epochs=${B:-null}"}).eval.every_epochs, std::nullopt);
  EXPECT_THAT(refusal(kSmallest, {"data.batch_size='${B:-32}'"}), HasSubstr("got \"32\" (text)"));
}

TEST(EnvironmentVariables, NeverChangeTheStructure) {
  const std::map<std::string, std::string> environment = {{"A", "a, seed: 3}\nseed: 4 # ${A}"}};
  const Recipe recipe = parse("name: ${A}\n" + kSmallest, {}, environment);
  EXPECT_EQ(recipe.name, "a, seed: 3}\nseed: 4 # ${A}");
  EXPECT_EQ(recipe.seed, 0);
  EXPECT_THAT(refusal(kSmallest, {"model.freeze=${A}"}, {{"A", "[]"}}),
              HasSubstr("expected a list of texts, got '[]'"));
}

TEST(EnvironmentVariables, WorkInListsAndSources) {
  const Recipe recipe = parse(
      "model: {path: m.pt, inputs: [\"${A}\", b]}\n"
      "data:\n"
      "  train:\n"
      "    format: ${F:-safetensors}\n"
      "    path: ${D}/x\n",
      {}, {{"A", "a"}, {"D", "/data"}});
  EXPECT_EQ(recipe.model.inputs.at(0).field, "a");
  EXPECT_EQ(recipe.data.train.options.get<Paths>("path").at(0), "/data/x");
}

TEST(EnvironmentVariables, DollarsAreLiteralElsewhere) {
  EXPECT_EQ(name_of_run("$${A}", {}), "${A}");
  EXPECT_EQ(name_of_run("'$${'", {}), "${");
  EXPECT_EQ(name_of_run("$A $$ $", {{"A", "a"}}), "$A $$ $");
  EXPECT_EQ(name_of_run("$$${A}", {}), "$${A}");
}

TEST(EnvironmentVariables, MistakesNameTheVariable) {
  EXPECT_EQ(
      refusal("name: ${NO}\n" + kSmallest),
      "run.yaml:1:7: name: environment variable NO is not set; ${NO:-default} gives a default");
  EXPECT_EQ(refusal(kSmallest, {"seed=${NO}"}),
            "--set seed=${NO}: seed: environment variable NO is not set; ${NO:-default} gives a "
            "default");
  EXPECT_EQ(refusal("name: ${A\n" + kSmallest),
            "run.yaml:1:7: name: '${' without '}' in '${A'; $${ is a literal ${");
  for (const std::string bad :
       {"${}", "${1A}", "${A-b}", "${A B}", "${:-x}", "${A:b}", "${${A}}"}) {
    EXPECT_THAT(refusal("name: '" + bad + "'\n" + kSmallest, {}, {{"A", "a"}}),
                HasSubstr("run.yaml:1:7: name: malformed variable"))
        << bad;
  }
  EXPECT_THAT(refusal("name: ${A}\n" + kSmallest, {}, {{"A", "\xFF"}}),
              HasSubstr("environment variable A is not valid UTF-8"));
}

TEST(EnvironmentVariables, AMistakeIsReportedOnceWithTheOthers) {
  EXPECT_EQ(
      refusal("name: ${NO}\nseed: x\n" + kSmallest),
      "2 mistakes in run.yaml:\n"
      "run.yaml:1:7: name: environment variable NO is not set; ${NO:-default} gives a default\n"
      "run.yaml:2:7: seed: expected an integer >= 0, got 'x'");
  EXPECT_EQ(
      refusal("model: {path: a, inputs: [\"${NO}\"]}\n" + test::kData),
      "run.yaml:1:27: model.inputs: environment variable NO is not set; ${NO:-default} gives a "
      "default");
}

TEST(EnvironmentVariables, ComeFromTheProcess) {
  setenv("DECENT_TEST_VARIABLE", "here", 1);
  EXPECT_EQ(environment_variable("DECENT_TEST_VARIABLE"), "here");
  unsetenv("DECENT_TEST_VARIABLE");
  EXPECT_EQ(environment_variable("DECENT_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace decent
