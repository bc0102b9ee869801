// data.train and data.eval: the keys depend on the format. Also model.inputs.

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

std::string refusal_of_source(const std::string& source) {
  return refusal(kModel + "data:\n  train: " + source + "\n");
}

TEST(Sources, Builtin) {
  const SourceRecipe source = parse(kSmallest).data.train;
  EXPECT_EQ(source.format, "builtin");
  EXPECT_EQ(source.name, "digits");
  EXPECT_EQ(source.split, "train");
  EXPECT_TRUE(source.paths.empty());
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

TEST(Sources, FormatsThatAreNotSupportedYet) {
  const std::vector<std::string> sources = {
      "{format: idx, images: a, labels: b}",
      "{format: images, path: a, size: [3, 3], channels: 3}",
      "{format: csv, path: a, x: [0, 1], y: c, header: true, missing: nan}",
      "{format: tokens, path: a, dtype: uint16, length: 8}",
      "{format: text, path: a, length: 8}",
  };
  for (const std::string& source : sources) {
    const std::string message = refusal_of_source(source);
    EXPECT_THAT(message, HasSubstr("run.yaml:3:19: data.train.format: not supported yet: "));
    EXPECT_THAT(message, HasSubstr("; for now only builtin, safetensors, npz"));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Sources, ManyFiles) {
  const auto paths = [](const std::string& path) {
    return parse(kModel + "data: {train: {format: npz, path: " + path + "}}\n").data.train.paths;
  };
  EXPECT_EQ(paths("[a, b]").size(), 2U);
  for (const std::string glob : {"'a-*.st'", "'a?.st'", "'[ab].st'"}) {
    EXPECT_EQ(paths(glob).size(), 1U) << glob;
  }
  EXPECT_THAT(refusal_of_source("{format: safetensors, path: []}"), HasSubstr("expected a path"));
  EXPECT_THAT(refusal_of_source("{format: safetensors, path: [a, 3, {}]}"),
              HasSubstr("run.yaml:3:45: data.train.path: expected a path, got a mapping"));
  const Recipe recipe = parse(kModel + "data: {train: {format: safetensors, path: [a]}}\n");
  EXPECT_EQ(recipe.data.train.paths.size(), 1U);
}

TEST(Sources, LimitAndHoldoutAreNotSupportedYet) {
  const std::string start = "{format: builtin, name: a, split: train, ";
  EXPECT_EQ(refusal_of_source(start + "limit: 5}"),
            "run.yaml:3:58: data.train.limit: expected null, got '5'; any other value is not "
            "supported yet");
  EXPECT_THAT(refusal_of_source(start + "holdout: {fraction: 0.1, part: eval}}"),
              HasSubstr("data.train.holdout: expected null, got a mapping"));
  // As recipe.yaml of every run has them.
  const std::string source = start + "limit: null, holdout: null}";
  EXPECT_NO_THROW(parse(kModel + "data: {train: " + source + "}\n"));
}

TEST(Sources, AFormatThatTakesAKeyThatThereIsNotIsABug) {
  config::Names names = test::kNames;
  names.formats.push_back({.name = "odd", .keys = {"path", "evenness"}});
  EXPECT_THROW(
      parse_recipe(kModel + "data: {train: {format: odd, path: a}}\n", "run.yaml", {}, names),
      std::logic_error);
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
