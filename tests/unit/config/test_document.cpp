// The YAML around the keys: syntax errors, aliases, documents that are no recipe, and hostile ones.

#include "decent/config/document.h"

#include <gmock/gmock.h>

#include "support.h"

namespace decent {
namespace {

using test::kData;
using test::kModel;
using test::kSmallest;
using test::parse;
using test::refusal;
using ::testing::HasSubstr;

TEST(Document, KeepsPositionsQuotesAndDuplicates) {
  const config::Value root = config::parse_document("a: 1\nb:\n  c: '1'\n  c: [x, ~]\n", 4);
  ASSERT_EQ(root.entries.size(), 2U);
  EXPECT_EQ(root.entries[0].value.where, (config::Where{4, 1, 4}));
  EXPECT_FALSE(root.entries[0].value.quoted);
  const config::Value& b = root.entries[1].value;
  ASSERT_EQ(b.entries.size(), 2U);
  EXPECT_TRUE(b.entries[0].value.quoted);
  EXPECT_EQ(b.entries[1].where, (config::Where{4, 4, 3}));
  ASSERT_EQ(b.entries[1].value.items.size(), 2U);
  EXPECT_EQ(b.entries[1].value.items[1].kind, config::Value::Kind::null);
}

TEST(Document, SyntaxErrorsAreOneMessageWithTheirPlace) {
  EXPECT_EQ(refusal("model: {path: a\nseed: 1\n"),
            "run.yaml:2:5: not valid YAML: end of map flow not found");
  for (const std::string text : {"a: [", "a: 'b", "a:\n\t- b\n", "a: b: c", "*nowhere",
                                 "%YAML 9.9\n---\na: 1", "a: \"\\q\"", "@a", "}", "a: 1\n}"}) {
    EXPECT_THAT(refusal(text),
                ::testing::MatchesRegex("run.yaml:[0-9]+:[0-9]+: not valid YAML: .*"))
        << text;
  }
}

// The parser itself speaks of an illegal map value, or of nothing that has to do with tabs.
TEST(Document, ATabThatIndentsIsNamedWhereItStands) {
  const std::string message =
      ": not valid YAML: a tab indents this line; YAML indents with spaces only";
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{
           {"model:\n\tpath: a.pt\n", "2:1"},
           {"model:\n  path: a.pt\n\tinputs: [x]\n", "3:1"},
           {"model:\n  path: a.pt\n  \tloss: mse\n", "3:3"},
           {"model:\n  path: a.pt\n\t# why\ndata: 1\n", "3:1"},
           {"model:\n  inputs:\n\t- x\n\t- y\n", "3:1"},
           {"data:\n\ttrain:\n\t\tformat: builtin\n", "2:1"}}) {
    EXPECT_EQ(refusal(text), "run.yaml:" + place + message) << text;
  }
}

TEST(Document, TabsElsewhereAreWhiteSpace) {
  EXPECT_EQ(parse("seed:\t3\t# three\n" + kModel +
                  "data: {train: {format: builtin,\n\tname: digits, split: train}}\n")
                .seed,
            3);
}

TEST(Document, WhatIsNoRecipe) {
  for (const std::string text : {"", "\n\n", "# only a comment\n", "---\n", "~"}) {
    EXPECT_THAT(refusal(text), HasSubstr("the recipe is empty")) << text;
  }
  EXPECT_EQ(refusal("- a\n- b\n"),
            "run.yaml:1:1: expected a recipe (sections such as model and data), got [a, b]");
  EXPECT_THAT(refusal("just text"), HasSubstr("got 'just text'"));
  EXPECT_EQ(
      refusal(kSmallest + "---\nseed: 1\n"),
      "run.yaml:4:1: more text after the end of the YAML document (a recipe is one document)");
  EXPECT_THAT(refusal("? [a]\n: b\n"), HasSubstr("a key must be a name"));
  EXPECT_THAT(refusal("seed: !int 3\n"), HasSubstr("run.yaml:1:7: the YAML tag !int is not used"));
}

TEST(Document, ADocumentMayBeMarkedAndEndInDots) {
  EXPECT_EQ(parse("---\nseed: 3\n" + kSmallest + "...\n").seed, 3);
  EXPECT_EQ(parse("\xEF\xBB\xBFseed: 3\r\n" + kModel + kData).seed, 3);
}

TEST(Document, AliasesAreCopies) {
  const Recipe recipe = parse(kModel +
                                  "data:\n"
                                  "  train: &digits {format: builtin, name: digits, split: train}\n"
                                  "  eval: *digits\n",
                              {"data.eval.split=test"});
  EXPECT_EQ(recipe.data.train.options.get<std::string>("split"), "train");
  EXPECT_EQ(recipe.data.eval->options.get<std::string>("split"), "test");
}

TEST(Document, LoadsFromDiskAndNamesWhatIsMissing) {
  EXPECT_THROW(load_recipe("/nowhere/run.yaml", {}, test::kNames), UserError);
  EXPECT_THROW(load_recipe("/tmp", {}, test::kNames), UserError);
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Hostile, TextsEndInAnErrorSoon) {
  const std::vector<std::string> texts = {
      repeated("[", 200'000),
      repeated("{a: ", 100'000),
      repeated("? ", 100'000),
      repeated("- ", 100'000),
      repeated("&a ", 100'000),
      repeated("\"", 100'001),
      repeated("*a ", 100'000),
      repeated("[,", 100'000),
      repeated("key:\n", 150'000),
      std::string(300'000, '\0'),
      std::string(900'000, 'x'),
      std::string(2'000'000, '#'),
      "name: \"" + repeated("${", 100'000) + "\"",
      "seed: " + std::string(500'000, '9'),
      "\xFF\xFE\x00",
      "a: \xC0\xAF\xED\xA0\x80",
  };
  for (const std::string& text : texts) {
    const std::string message = refusal(text);
    EXPECT_THAT(message, HasSubstr("run.yaml")) << text.substr(0, 20);
    EXPECT_LT(message.size(), 40'000U) << text.substr(0, 20);
  }
}

// By chance garbage can be a valid text; all else must be a UserError.
void expect_no_other_error(const std::string& text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run.yaml"));
  }
}

TEST(Hostile, GarbageIsReadOrRefused) {
  std::uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      state = state * 1664525U + 1013904223U;
      text += static_cast<char>(state >> 24);
    }
    expect_no_other_error(text);
    expect_no_other_error(kSmallest + "name: \"" + text);
  }
}

TEST(Hostile, AliasBombs) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string one = "*a" + std::to_string(i - 1) + ", ";
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(one, 10) + "]\n";
  }
  EXPECT_THAT(refusal(text), HasSubstr("more than 200000 values"));
}

// 860 KB that would become 60 GB.
TEST(Hostile, AliasesOfLongTexts) {
  const std::string text =
      "a: &a " + std::string(300'000, 'x') + "\nb: [" + repeated("*a,", 190'000) + "]\n";
  EXPECT_THAT(refusal(text), HasSubstr("aliases make the recipe larger than 16 MiB"));
  const std::string keys =
      "a: &a {" + std::string(1000, 'k') + ": 1}\nb: [" + repeated("*a,", 60'000) + "]\n";
  EXPECT_THAT(refusal(keys), HasSubstr("aliases make the recipe larger than 16 MiB"));
}

TEST(Hostile, AliasCycles) {
  EXPECT_THAT(refusal("a: &a [*a]\n"), HasSubstr("run.yaml:1:8: an alias that contains itself"));
  EXPECT_THAT(refusal("a: &a {b: *a}\n"), HasSubstr("an alias that contains itself"));
}

TEST(Hostile, AliasesDoNotNestDeeperThanTheLimit) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i) {
    const std::string number = std::to_string(i);
    text += "a" + number + ": &a" + number + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(refusal(text), HasSubstr("nested deeper than 64 levels"));
}

}  // namespace
}  // namespace decent
