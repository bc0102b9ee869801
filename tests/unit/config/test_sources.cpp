// data.train and data.eval: the keys depend on the format. Also model.inputs.

#include <gmock/gmock.h>

#include "../support/refusal.h"
#include "support.h"

namespace decent {
namespace {

using test::kData;
using test::kModel;
using test::kSmallest;
using test::parse;
using test::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of_source(const std::string& source) {
  return refusal(kModel + "data:\n  train: " + source + "\n");
}

TEST(Sources, Builtin) {
  const SourceRecipe source = parse(kSmallest).data.train;
  EXPECT_EQ(source.format, "builtin");
  EXPECT_EQ(source.options.get<std::string>("name"), "digits");
  EXPECT_EQ(source.options.get<std::string>("split"), "train");
  EXPECT_TRUE(source.options.is_null("path"));
}

TEST(Sources, KeysOfAnotherFormatAreUnknown) {
  EXPECT_EQ(refusal_of_source("{format: safetensors, path: a, split: train}"),
            "run.yaml:3:41: data.train.split: unknown key; valid: format, path, limit, holdout");
  EXPECT_EQ(refusal_of_source("{format: builtin, name: a, split: train, path: b}"),
            "run.yaml:3:51: data.train.path: unknown key here; did you mean 'model.path'?");
}

TEST(Sources, MissingKeys) {
  EXPECT_EQ(refusal_of_source("{format: safetensors}"),
            "run.yaml:3:3: data.train.path: missing; expected a path or a list of paths");
  EXPECT_EQ(refusal_of_source("{format: builtin}"),
            "2 mistakes in run.yaml:\n"
            "run.yaml:3:3: data.train.name: missing; expected a text\n"
            "run.yaml:3:3: data.train.split: missing; expected one of train, test");
  EXPECT_EQ(refusal_of_source("{path: a}"),
            "run.yaml:3:3: data.train.format: missing; expected one of builtin, safetensors, npz");
}

TEST(Sources, UnknownFormats) {
  EXPECT_EQ(refusal_of_source("{format: safetensor, path: a}"),
            "run.yaml:3:19: data.train.format: expected one of builtin, safetensors, npz, got "
            "'safetensor'; did you mean 'safetensors'?");
}

TEST(Sources, ManyFiles) {
  const auto paths = [](const std::string& path) {
    return parse(kModel + "data: {train: {format: npz, path: " + path + "}}\n")
        .data.train.options.get<Paths>("path");
  };
  EXPECT_EQ(paths("[a, b]").size(), 2U);
  for (const std::string glob : {"'a-*.st'", "'a?.st'", "'[ab].st'"}) {
    EXPECT_EQ(paths(glob).size(), 1U) << glob;
  }
  EXPECT_THAT(refusal_of_source("{format: safetensors, path: []}"), HasSubstr("expected a path"));
  EXPECT_THAT(refusal_of_source("{format: safetensors, path: [a, 3, {}]}"),
              HasSubstr("run.yaml:3:45: data.train.path: expected a path, got a mapping"));
  const Recipe recipe = parse(kModel + "data: {train: {format: safetensors, path: [a]}}\n");
  EXPECT_EQ(recipe.data.train.options.get<Paths>("path").size(), 1U);
}

TEST(Sources, LimitAndHoldout) {
  const auto source = [](const std::string& more) {
    return parse(kModel + "data: {train: {format: npz, path: a, " + more + "}}\n").data.train;
  };
  EXPECT_EQ(source("limit: 5").limit, 5);
  EXPECT_EQ(source("limit: null, holdout: null"), source("limit: null"));
  EXPECT_EQ(source("holdout: {fraction: 0.25, part: eval}").holdout,
            (HoldoutRecipe{.fraction = 0.25, .seed = 0, .part = HoldoutPart::eval}));
  EXPECT_EQ(refusal_of_source("{format: npz, path: a, limit: 0}"),
            "run.yaml:3:40: data.train.limit: expected an integer >= 1 or null, got '0'");
  EXPECT_EQ(refusal_of_source("{format: npz, path: a, holdout: {fraction: 1, part: test}}"),
            "2 mistakes in run.yaml:\n"
            "run.yaml:3:53: data.train.holdout.fraction: expected a number in (0, 1), got '1'\n"
            "run.yaml:3:62: data.train.holdout.part: expected one of train, eval, got 'test'");
}

// ---- keys that formats bring
// ---------------------------------------------------------------------

config::Names names_with(std::vector<OptionKey> keys) {
  config::Names names = test::kNames;
  names.formats.push_back({.name = "own", .keys = std::move(keys)});
  return names;
}

const std::vector<OptionKey> kKeys = {
    {.name = "flag", .type = OptionType::boolean, .fallback = true},
    {.name = "count", .type = OptionType::integer, .fallback = kNull, .range = at_least(1)},
    {.name = "share", .type = OptionType::number, .fallback = 0.5, .range = within(0, 1)},
    {.name = "word", .type = OptionType::text, .fallback = std::string("a"), .names = {"a", "b"}},
    {.name = "file", .type = OptionType::path, .fallback = kNull},
    {.name = "size", .type = OptionType::integers, .fallback = kNull, .range = at_least(1)},
    {.name = "mean", .type = OptionType::numbers, .fallback = kNull},
    {.name = "x", .type = OptionType::texts, .fallback = kNull}};

Options options_of(const std::string& more) {
  const std::string text = kModel + "data: {train: {format: own" + more + "}}\n";
  return parse_recipe(text, "/recipes/run.yaml", {}, names_with(kKeys)).data.train.options;
}

TEST(SourceOptions, HaveDefaults) {
  const Options options = options_of("");
  EXPECT_TRUE(options.get<bool>("flag"));
  EXPECT_EQ(options.get<double>("share"), 0.5);
  EXPECT_EQ(options.get<std::string>("word"), "a");
  for (const char* name : {"count", "file", "size", "mean", "x"})
    EXPECT_TRUE(options.is_null(name)) << name;
}

TEST(SourceOptions, OfEveryType) {
  const Options options = options_of(
      ", flag: false, count: 3, share: 1, word: b, file: c, size: [2, 3], mean: 1, x: [a, 2]");
  EXPECT_FALSE(options.get<bool>("flag"));
  EXPECT_EQ(options.get_if<std::int64_t>("count"), 3);
  EXPECT_EQ(options.get<double>("share"), 1);
  EXPECT_EQ(options.get<std::string>("word"), "b");
  EXPECT_EQ(options.get<std::filesystem::path>("file"), "/recipes/c");
  EXPECT_THAT(options.get<std::vector<std::int64_t>>("size"), ElementsAre(2, 3));
  EXPECT_THAT(options.get<std::vector<double>>("mean"), ElementsAre(1));
  EXPECT_THAT(options.get<std::vector<std::string>>("x"), ElementsAre("a", "2"));
}

TEST(SourceOptions, ArePrintedAsTheyAreRead) {
  for (const char* more : {"", ", size: 2, mean: [0.1, 2], x: ['1', 'a, b'], file: /x, word: b"}) {
    const std::string text = kModel + "data: {train: {format: own" + more + "}}\n";
    const Recipe recipe = parse_recipe(text, "/recipes/run.yaml", {}, names_with(kKeys));
    EXPECT_EQ(parse_recipe(print_recipe(recipe), "run.yaml", {}, names_with(kKeys)), recipe);
  }
}

TEST(SourceOptions, Mistakes) {
  const std::string message = testing::refusal(
      [] { options_of(", flag: 1, count: 0, share: 2, word: c, size: [0], mean: [], y: 3"); });
  for (const char* part :
       {"7 mistakes in ", ":2:35: data.train.flag: expected true or false, got '1'\n",
        ":2:45: data.train.count: expected an integer >= 1 or null, got '0'\n",
        ":2:55: data.train.share: expected a number in [0, 1], got '2'\n",
        ":2:64: data.train.word: expected one of a, b, got 'c'; did you mean 'a'?\n",
        ":2:74: data.train.size: expected an integer >= 1, got '0'\n",
        ":2:84: data.train.mean: expected a number or a list of numbers or null, got []\n",
        ":2:88: data.train.y: unknown key; did you mean 'x'?"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

// ---- transforms
// ----------------------------------------------------------------------------------

std::vector<TransformRecipe> transforms(const std::string& list) {
  return parse(kSmallest, {"data.transforms=" + list}).data.transforms;
}

TEST(Transforms, ByNameByValueAndByKeys) {
  const auto all =
      transforms("[{crop: 3}, flip, {flip: {p: 1}}, {crop: {size: [2, 3], padding: 4}}]");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].name, "crop");
  EXPECT_THAT(all[0].options.get<std::vector<std::int64_t>>("size"), ElementsAre(3));
  EXPECT_EQ(all[0].options.get<std::int64_t>("padding"), 0);
  EXPECT_EQ(all[1].options.get<double>("p"), 0.5);
  EXPECT_EQ(all[2].options.get<double>("p"), 1);
  EXPECT_THAT(all[3].options.get<std::vector<std::int64_t>>("size"), ElementsAre(2, 3));
  EXPECT_EQ(all[3].options.get<std::int64_t>("padding"), 4);
  EXPECT_EQ(transforms("[{flip: null}]"), transforms("[{flip: {}}]"));
}

TEST(Transforms, ArePrintedAsTheyAreRead) {
  const Recipe recipe =
      parse(kSmallest, {"data.transforms=[{crop: [2, 3]}, flip, to_float, {to_float: {}}]"});
  EXPECT_EQ(parse(print_recipe(recipe)), recipe);
  for (const std::string list : {"null", "[]", "[{crop: 3}, to_float]"}) {
    const Recipe other = parse(kSmallest, {"data.eval_transforms=" + list});
    EXPECT_EQ(other.data.eval_transforms.has_value(), list != "null");
    EXPECT_EQ(parse(print_recipe(other)), other);
  }
}

TEST(Transforms, Mistakes) {
  const auto refused = [](const std::string& list) {
    return refusal(kSmallest + "", {"data.transforms=" + list});
  };
  EXPECT_THAT(refused("[crops]"),
              HasSubstr("data.transforms: expected one of crop, flip, to_float, "
                        "got 'crops'; did you mean 'crop'?"));
  EXPECT_THAT(refused("[crop]"),
              HasSubstr("data.transforms.crop.size: missing; expected an integer"));
  EXPECT_THAT(refused("[{crop: 0}]"),
              HasSubstr("data.transforms.crop.size: expected an integer >= 1"));
  EXPECT_THAT(refused("[{crop: {sizes: 3}}]"),
              HasSubstr("data.transforms.crop.sizes: unknown key"));
  EXPECT_THAT(refused("[{to_float: 3}]"),
              HasSubstr("data.transforms.to_float: expected a mapping"));
  EXPECT_THAT(refused("[{crop: 3, flip: 1}]"), HasSubstr("data.transforms: expected a transform"));
  EXPECT_THAT(refused("[3]"), HasSubstr("data.transforms: expected one of crop, flip, to_float"));
}

TEST(Inputs, ListAndMapping) {
  EXPECT_EQ(parse(kData + "model: {path: a, inputs: [p, q]}\n").model.inputs,
            (std::vector<ModelInput>{{"", "p"}, {"", "q"}}));
  EXPECT_EQ(parse(kData + "model: {path: a, inputs: {ids: x, mask: m}}\n").model.inputs,
            (std::vector<ModelInput>{{"ids", "x"}, {"mask", "m"}}));
}

TEST(Inputs, Mistakes) {
  const std::string shape =
      "expected a list of data fields or {input name: field}, not empty, got ";
  const auto refused = [](const std::string& inputs) {
    return refusal(kData + "model: {path: a, inputs: " + inputs + "}\n");
  };
  EXPECT_EQ(refused("x"), "run.yaml:2:26: model.inputs: " + shape + "'x'");
  EXPECT_EQ(refused("{}"), "run.yaml:2:26: model.inputs: " + shape + "a mapping");
  EXPECT_EQ(refused("[a, [b]]"), "run.yaml:2:30: model.inputs: expected a text, got [b]");
  EXPECT_EQ(refused("{a: ''}"), "run.yaml:2:30: model.inputs.a: expected a text, got \"\" (text)");
  EXPECT_EQ(refused("{a: x, a: y}"), "run.yaml:2:33: model.inputs.a: duplicate key");
  EXPECT_EQ(refused("{'': x}"), "run.yaml:2:27: model.inputs: expected the name of an argument");
}

}  // namespace
}  // namespace decent
