#include "decent/core/text.h"

#include <gtest/gtest.h>

#include <optional>

namespace decent {
namespace {

const std::vector<std::string> kOptimizers = {"adam", "adamw", "sgd", "accum_adam"};

TEST(NearestName, FindsMisspellings) {
  EXPECT_EQ(nearest_name("adamww", kOptimizers), "adamw");          // insertion
  EXPECT_EQ(nearest_name("sdg", kOptimizers), "sgd");               // swap of neighbours
  EXPECT_EQ(nearest_name("acum_adam", kOptimizers), "accum_adam");  // deletion
  EXPECT_EQ(nearest_name("sgb", kOptimizers), "sgd");               // substitution
  EXPECT_EQ(nearest_name("AdamW", kOptimizers), "adamw");           // case
}

TEST(NearestName, TakesTheFirstOfEquals) {
  EXPECT_EQ(nearest_name("ax", std::vector<std::string>{"ab", "ac"}), "ab");
}

TEST(NearestName, GivesNothingWhereAllAreFar) {
  EXPECT_EQ(nearest_name("lamb", kOptimizers), std::nullopt);
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
  EXPECT_EQ(nearest_name("", kOptimizers), std::nullopt);
}

TEST(NearestName, AllowsAThirdOfTheWord) {
  const std::vector<std::string> names = {"abcdefghi"};
  EXPECT_EQ(nearest_name("xyzdefghi", names), "abcdefghi");   // 3 edits in 9
  EXPECT_EQ(nearest_name("wxyzefghi", names), std::nullopt);  // 4 edits in 9
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, "|"), "a|b");
}

TEST(ShapeText, ReadsAsUsersWriteIt) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text(std::vector<std::int64_t>{32, 1, 8, 8}), "[32, 1, 8, 8]");
}

TEST(Counted, OneThingHasNoPlural) {
  EXPECT_EQ(counted(1, "worker"), "1 worker");
  EXPECT_EQ(counted(0, "worker"), "0 workers");
  EXPECT_EQ(counted(12, "worker"), "12 workers");
  EXPECT_EQ(counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(counted(2, "class", "classes"), "2 classes");
}

TEST(GlobMatches, WholeTexts) {
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{{"*", ""},
                                                        {"*", "a.b"},
                                                        {"fc.weight", "fc.weight"},
                                                        {"fc.*", "fc.weight"},
                                                        {"*.bias", "a.b.bias"},
                                                        {"layers.?.w*", "layers.3.weight"},
                                                        {"a*b*c", "aXbXbXc"},
                                                        {"**", "x"},
                                                        {"", ""},
                                                        {"a[0]", "a[0]"}}) {
    EXPECT_TRUE(glob_matches(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{{"", "a"},
                                                        {"fc", "fc.weight"},
                                                        {"weight", "fc.weight"},
                                                        {"fc.?", "fc.10"},
                                                        {"*.bias", "bias"},
                                                        {"a*b*c", "aXbX"},
                                                        {"FC.*", "fc.weight"},
                                                        {"?", ""}}) {
    EXPECT_FALSE(glob_matches(pattern, text)) << pattern << " " << text;
  }
}

TEST(SecondsText, IsShort) {
  EXPECT_EQ(seconds_text(std::chrono::seconds(60)), "60 s");
  EXPECT_EQ(seconds_text(std::chrono::milliseconds(320)), "0.3 s");
}

}  // namespace
}  // namespace decent
