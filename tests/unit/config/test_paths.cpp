// Which folder a relative path is relative to.

#include <gmock/gmock.h>

#include "support.h"

namespace decent {
namespace {

namespace fs = std::filesystem;
using test::kData;
using test::kModel;
using test::kSmallest;
using test::parse;

// parse() reads /recipes/run.yaml.
Recipe parse_at(const std::string& file) { return parse_recipe(kSmallest, file, {}, test::kNames); }

TEST(Paths, AreRelativeToTheRecipe) {
  const Recipe recipe = parse(
      "model: {path: ../m/a.pt}\n"
      "data:\n"
      "  train: {format: safetensors, path: ./d//x.st}\n"
      "  eval: {format: safetensors, path: /abs/../y.st}\n");
  EXPECT_EQ(recipe.model.path, "/m/a.pt");
  EXPECT_EQ(recipe.data.train.options.get<Paths>("path"),
            (std::vector<fs::path>{"/recipes/d/x.st"}));
  EXPECT_EQ(recipe.data.eval->options.get<Paths>("path"), (std::vector<fs::path>{"/y.st"}));
}

TEST(Paths, OfOverridesAreRelativeToTheWorkingFolder) {
  const Recipe recipe =
      parse(kSmallest, {"model.path=m/a.pt", "data.train={format: safetensors, path: ../x.st}"});
  EXPECT_EQ(recipe.model.path, (fs::current_path() / "m/a.pt").lexically_normal());
  EXPECT_EQ(recipe.data.train.options.get<Paths>("path").at(0),
            (fs::current_path() / "../x.st").lexically_normal());
}

TEST(Paths, OfARecipeWithoutAFolderAreMadeAbsolute) {
  const Recipe recipe = parse_at("run.yaml");
  EXPECT_EQ(recipe.model.path, fs::current_path() / "m.pt");
  EXPECT_EQ(parse_at("sub/run.yaml").model.path, fs::current_path() / "sub/m.pt");
}

TEST(Paths, OutputIsKeptAsGiven) {
  EXPECT_EQ(parse("output: ../out/./x\n" + kSmallest).output.string(), "../out/./x");
  EXPECT_EQ(parse(kSmallest, {"output=../out"}).output.string(), "../out");
}

TEST(Paths, ATildeIsAFolderLikeAnyOther) {
  EXPECT_EQ(parse("model: {path: ~/a.pt}\n" + kData).model.path, "/recipes/~/a.pt");
}

TEST(Paths, NameIsTheStemOfTheFile) {
  EXPECT_EQ(parse_at("a/b.c.yaml").name, "b.c");
  EXPECT_EQ(parse_at("").name, "recipe");
  EXPECT_THROW(parse_at("\xFF.yaml"), UserError);
}

TEST(Paths, ThatYamlCannotHoldAreRefused) { EXPECT_THROW(parse_at("/\xFF/run.yaml"), UserError); }

}  // namespace
}  // namespace decent
