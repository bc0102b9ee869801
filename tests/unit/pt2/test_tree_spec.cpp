#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../support/refusal.h"
#include "decent/pt2/archive/parse.h"

namespace decent::pt2 {
namespace {

using decent::testing::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kLeaf = R"({"type": null, "context": null, "children_spec": []})";

// As treespec_dumps writes it; `context` is JSON.
std::string tree_node(const std::string& type, const std::string& context,
                      const std::string& children) {
  return R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)" +
         children + "]}";
}

TreeSpec parse_tree(const std::string& tree, const NamedTuples& tuples = {}) {
  return parse_tree_spec("[1, " + tree + "]", tuples, "'x': in_spec");
}
std::string tree_refusal(const std::string& text) {
  return refusal([&] { parse_tree_spec(text, {}, "'x': in_spec"); });
}

TEST(TreeSpec, SequencesAndLeaves) {
  const TreeSpec spec =
      parse_tree(tree_node("builtins.tuple", "\"null\"",
                           kLeaf + ", " + tree_node("builtins.list", "\"null\"", kLeaf) + ", " +
                               tree_node("collections.deque", "\"3\"", kLeaf)));
  EXPECT_EQ(spec.kind, TreeSpec::Kind::tuple);
  EXPECT_EQ(spec.leaves(), 3u);
  EXPECT_EQ(spec.children[0].kind, TreeSpec::Kind::leaf);
  EXPECT_EQ(spec.children[1].kind, TreeSpec::Kind::list);
  EXPECT_EQ(spec.children[2].kind, TreeSpec::Kind::list);
}

TEST(TreeSpec, DictionariesHaveKeys) {
  for (const char* type : {"builtins.dict", "collections.OrderedDict"}) {
    const TreeSpec spec = parse_tree(tree_node(type, R"("[\"b\", 1]")", kLeaf + "," + kLeaf));
    EXPECT_EQ(spec.kind, TreeSpec::Kind::dict);
    EXPECT_THAT(spec.keys, ElementsAre(TreeKey("b"), TreeKey(std::int64_t{1})));
  }
  const TreeSpec spec = parse_tree(tree_node("collections.defaultdict",
                                             R"({"default_factory_module": "builtins",
                                       "default_factory_name": "list", "dict_context": ["a"]})",
                                             kLeaf));
  EXPECT_EQ(spec.kind, TreeSpec::Kind::dict);
  EXPECT_THAT(spec.keys, ElementsAre(TreeKey("a")));
}

TEST(TreeSpec, FieldsHaveNames) {
  const std::string two = kLeaf + "," + kLeaf;
  const NamedTuples tuples{{"my.Pair", {"first", "second"}}};
  const auto names = ElementsAre(TreeKey("first"), TreeKey("second"));
  const TreeSpec tuple =
      parse_tree(tree_node("collections.namedtuple", "\"my.Pair\"", two), tuples);
  EXPECT_EQ(tuple.kind, TreeSpec::Kind::fields);
  EXPECT_THAT(tuple.keys, names);
  // As transformers registers ModelOutput, and as torch.utils._pytree registers dataclasses.
  for (const char* context :
       {R"("[\"first\", \"second\"]")", R"("[[\"first\", \"second\"], [\"third\"]]")"}) {
    const TreeSpec spec = parse_tree(tree_node("my.Output", context, two));
    EXPECT_EQ(spec.kind, TreeSpec::Kind::fields);
    EXPECT_EQ(spec.type, "my.Output");
    EXPECT_THAT(spec.keys, names);
  }
}

TEST(TreeSpec, OtherTypesKeepTheirContext) {
  for (const char* context : {R"("{\"a\": 1}")", R"("[0.5]")", R"({"a": 1})"}) {
    EXPECT_EQ(parse_tree(tree_node("my.Type", context, kLeaf)).kind, TreeSpec::Kind::other)
        << context;
  }
  EXPECT_EQ(parse_tree(tree_node("my.Type", R"("{\"a\": 1}")", kLeaf)).context, R"({"a": 1})");
  EXPECT_EQ(parse_tree(tree_node("collections.namedtuple", "\"my.Unknown\"", kLeaf)).kind,
            TreeSpec::Kind::other);
}

TEST(TreeSpec, WhatIsNotWholeIsRefused) {
  EXPECT_THAT(tree_refusal("[1]"),
              HasSubstr("'x': in_spec: it is no pair of a protocol and a tree"));
  EXPECT_THAT(tree_refusal("[2, " + kLeaf + "]"),
              HasSubstr("[0] is 2, a protocol that is not known"));
  EXPECT_THAT(tree_refusal("[1, {}]"), HasSubstr("[1] has no 'children_spec'"));
  EXPECT_THAT(tree_refusal(R"([1, {"type": null, "children_spec": [)" + kLeaf + "]}]"),
              HasSubstr("[1] has no type, but children"));
  EXPECT_THAT(tree_refusal("[1, " + tree_node("builtins.dict", R"("[\"a\"]")", "") + "]"),
              HasSubstr("[1] has 0 children and 1 names for them"));
  EXPECT_THAT(tree_refusal("[1, " + tree_node("builtins.dict", R"("[")", "") + "]"),
              HasSubstr("the context of 'builtins.dict': is no JSON"));
}

}  // namespace
}  // namespace decent::pt2
