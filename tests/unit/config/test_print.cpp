// print_recipe and back: the same recipe, the same text, from any folder.

#include <gmock/gmock.h>

#include <limits>

#include "decent/config/schema.h"
#include "support.h"

namespace decent {
namespace {

using test::kData;
using test::kSmallest;
using test::parse;
using ::testing::HasSubstr;

void expect_round_trip(const Recipe& recipe) {
  const std::string text = print_recipe(recipe);
  const Recipe again =
      parse_recipe(text, "/elsewhere/other.yaml", {}, test::kNames, test::variables({}));
  EXPECT_EQ(again, recipe) << text;
  EXPECT_EQ(print_recipe(again), text);
}

TEST(Print, TheSmallestRecipe) {
  const std::string text = print_recipe(parse(kSmallest));
  EXPECT_THAT(text,
              HasSubstr("name: run\nseed: 0\noutput: runs/run\n\nmodel:\n  path: /recipes/m.pt\n"
                        "  inputs: [x]\n  target: y\n  output: null\n"));
  EXPECT_THAT(text, HasSubstr("  train: {format: builtin, name: digits, split: train, limit: null, "
                              "holdout: null}\n  eval: null\n"));
  EXPECT_THAT(text, HasSubstr("  betas: [0.9, 0.999]\n  eps: 1e-08\n"));
  expect_round_trip(parse(kSmallest));
}

TEST(Print, HasEveryKeyInOrder) {
  const std::string text = print_recipe(parse(kSmallest));
  std::size_t at = 0;
  for (const config::KeyInfo& key : config::recipe_keys(test::kNames)) {
    const std::size_t dot = key.name.find('.');
    const std::string line =
        dot == std::string::npos ? key.name + ": " : "\n  " + key.name.substr(dot + 1) + ": ";
    const std::size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << key.name;
    at = found + line.size() - 1;
  }
}

TEST(Print, AFullRecipe) {
  expect_round_trip(parse(
      "name: full\nseed: 7\noutput: o\n"
      "model: {path: m.pt, inputs: {a: x, b: y}, target: t, loss: mse}\n"
      "data: {train: {format: safetensors, path: d.st}, eval: {format: builtin, name: d, split: "
      "test},"
      " batch_size: 3, shuffle: false}\n"
      "train: {steps: 5}\n"
      "optimizer: {name: sgd, lr: 0.1, nesterov: true, weight_decay: 1e-4}\n"
      "schedule: {name: constant, t_max: 4}\n"
      "parallel: {topology: alternating-exp-ring, local_world_size: 2, gamma: 0.3, backend: gloo}\n"
      "eval: {every_steps: 2, every_epochs: null}\n"
      "log: {progress: off}\n"));
}

TEST(Print, BatchSizes) {
  const std::string key = "data.batch_size";
  for (const std::string value :
       {"3", "{default: 3}", "{hosts: {a.lan: 2, 'b: c': 1}}", "{ranks: {0: 4, 12: 1}}",
        "{default: 3, hosts: {a: 2}, ranks: {1: 4}}"})
    expect_round_trip(parse(kSmallest, {key + "=" + value}));
  EXPECT_EQ(parse(kSmallest, {key + "={default: 3}"}), parse(kSmallest, {key + "=3"}));
}

TEST(Print, Numbers) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  for (double number : {0.1, 1.0 / 3, 1e-300, 1e300, 123456789.123456789, 5e-324, tiny,
                        std::numeric_limits<double>::max(), 25.0, 2.2250738585072014e-308}) {
    Recipe recipe = parse(kSmallest);
    recipe.optimizer.lr = number;
    expect_round_trip(recipe);
  }
  EXPECT_EQ(parse(kSmallest, {"seed=9223372036854775807"}).seed,
            std::numeric_limits<std::int64_t>::max());
}

TEST(Print, StrangeTexts) {
  const std::vector<std::string> texts = {"a b",
                                          " a",
                                          "a ",
                                          "null",
                                          "~",
                                          "true",
                                          "False",
                                          "on",
                                          "off",
                                          "no",
                                          "3",
                                          "3.5",
                                          "1e5",
                                          ".5",
                                          ".inf",
                                          "0x10",
                                          "-",
                                          "--",
                                          "---",
                                          "...",
                                          "-a",
                                          "?",
                                          "? a",
                                          ": ",
                                          "a: b",
                                          "a:",
                                          "a #b",
                                          "#a",
                                          "[a]",
                                          "{a}",
                                          "a,b",
                                          "&a",
                                          "*a",
                                          "!a",
                                          "|",
                                          ">",
                                          "'",
                                          "''",
                                          "\"",
                                          "a\"b",
                                          "\\",
                                          "a\\nb",
                                          "%a",
                                          "@a",
                                          "`a",
                                          "line\nbreak",
                                          "\n",
                                          "\t",
                                          "tab\tb",
                                          "\r\n",
                                          "\x01\x1F\x7F",
                                          "\xC2\x85",
                                          "\xC2\xA0",
                                          "\xE2\x80\xA8",
                                          "\xE2\x80\xA9",
                                          "\xEF\xBB\xBF",
                                          "\xC3\xA9",
                                          "\xF0\x9F\x98\x80",
                                          "${A}",
                                          "$${A}",
                                          "$$${",
                                          "${",
                                          "$",
                                          "$$",
                                          "${A:-b}",
                                          "<<",
                                          "=",
                                          "2024-01-01",
                                          std::string(3000, 'x'),
                                          std::string(3000, ':'),
                                          "/",
                                          "./a",
                                          "a=b"};
  for (const std::string& text : texts) {
    Recipe recipe = parse(kSmallest);
    recipe.name = text;
    recipe.output = text;
    recipe.model.path = "/" + text;
    recipe.model.target = text;
    recipe.model.inputs = {{"", text}, {"", "x"}};
    recipe.data.train.options = {{"name", text}, {"split", std::string("train")}};
    recipe.model.path = recipe.model.path.lexically_normal();
    expect_round_trip(recipe);
    if (text.size() > 255) continue;
    recipe.model.inputs = {{text, text}, {"other", "x"}};
    expect_round_trip(recipe);
  }
}

TEST(Print, OneCharacterTexts) {
  for (int c = 1; c < 128; ++c) {
    Recipe recipe = parse(kSmallest);
    recipe.name = std::string(1, static_cast<char>(c));
    recipe.model.target = recipe.name + "a" + recipe.name;
    recipe.model.inputs = {{recipe.name, recipe.name}};
    expect_round_trip(recipe);
  }
}

TEST(Print, ValuesWithAnInside) {
  Recipe recipe = parse(kSmallest);
  recipe.model.freeze = {"a.*", "b"};
  recipe.optimizer.param_groups = {{"*.bias", 0.0, std::nullopt}};
  recipe.parallel.topology.phases = {{{{0, 1}, 0.5}, {{2}, 1}}, {{{1, 2}, 0.5}, {{0}, 1}}};
  recipe.log.trace = {3, 5};
  const std::string text = print_recipe(recipe);
  EXPECT_THAT(text, HasSubstr("  freeze: [\"a.*\", b]\n"));
  EXPECT_THAT(
      text, HasSubstr("[{match: \"*.bias\", weight_decay: 0, lr_scale: null, optimizer: null}]\n"));
  EXPECT_THAT(text, HasSubstr("  topology: {phases: [[{ranks: [0, 1], weight: 0.5}, {ranks: [2], "
                              "weight: 1}], [{ranks: [1, 2], weight: 0.5}, {ranks: [0], weight: "
                              "1}]]}\n"));
  EXPECT_THAT(text, HasSubstr("  trace: [3, 5]\n"));
}

}  // namespace
}  // namespace decent
