#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "../support/refusal.h"
#include "programs.h"

namespace decent::pt2 {
namespace {

using ::testing::HasSubstr;
using testing::node;
using ::testing::Not;
using testing::program;
using testing::Schemas;
using testing::size;
using testing::tensor;

Translation translated(const ExportedProgram& made) {
  return translate({&made, nullptr}, Schemas(), "model 'm.pt2'");
}

std::string text_of(const ExportedProgram& made) { return translated(made).module.methods; }

std::string refusal_of(const ExportedProgram& made) {
  return decent::testing::refusal([&] { translated(made); });
}

/// A program of one node of that target, from x to y.
ExportedProgram one(const std::string& target, const testing::Inputs& more = {}) {
  testing::Inputs inputs = {{"self", tensor("x")}};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return program({node(target, inputs, {tensor("y")})}, {"y"});
}

TEST(Translate, ANodeIsACallOfItsOperator) {
  EXPECT_EQ(text_of(one("torch.ops.aten.relu.default")),
            "def forward(self, x: Tensor) -> Tensor:\n"
            "    assert x.dim() == 2 and x.size(1) == 3, \"x is not as in the export: [s0, 3]\"\n"
            "    y = torch.relu(x)\n"
            "    return y\n");
}

TEST(Translate, TensorsHaveTheirNamesInPython) {
  const Translation result =
      translated(program({node("torch.ops.aten.linear.default",
                               {{"self", tensor("x")}, {"weight", tensor("p_w")}}, {tensor("y")})},
                         {"y"}));
  EXPECT_THAT(result.module.methods, HasSubstr("torch.linear(x, self.fc.weight)"));
  ASSERT_EQ(result.module.parameters.size(), 1u);
  EXPECT_EQ(result.module.parameters[0].name, "fc.weight");
  ASSERT_EQ(result.module.buffers.size(), 1u);
  EXPECT_EQ(result.module.buffers[0].name, "bn.mean");
}

TEST(Translate, ArgumentsOfEveryKind) {
  const testing::Inputs more = {
      {"list", std::vector<std::int64_t>{1, 2}},
      {"empty", std::vector<std::int64_t>{}},
      {"infinity", -std::numeric_limits<double>::infinity()},
      {"text", std::string("a\"b")},
      {"type", ScalarType::int64},
      {"format", MemoryFormat::channels_last},
      {"device", Device{"cuda", 0}},
      {"none", None{}},
      {"indices", std::vector<OptionalTensor>{std::nullopt, TensorArgument{"x"}}}};
  const std::string text = text_of(one("torch.ops.aten.relu.default", more));
  EXPECT_THAT(text, HasSubstr("(x, [1, 2], annotate(List[int], []), float(\"-inf\"), \"a\\\"b\", "
                              "torch.int64, torch.channels_last, device, None, "
                              "annotate(List[Optional[Tensor]], [None, x]))"));
  EXPECT_THAT(text, HasSubstr("device = self.fc.weight.device"));
}

TEST(Translate, AWholeNumberForAFloatIsAFloat) {
  EXPECT_THAT(text_of(one("torch.ops.aten.relu.default", {{"p", std::int64_t{0}}})),
              HasSubstr("torch.relu(x, 0.0)"));
}

TEST(Translate, SwitchesFollowTheMode) {
  EXPECT_THAT(text_of(one("torch.ops.aten.dropout.default", {{"p", 0.5}, {"train", true}})),
              HasSubstr("torch.dropout(x, 0.5, self.training)"));
}

TEST(Translate, WritesIntoBuffersAreInTrainingAlone) {
  const ExportedProgram own = program(
      {node("torch.ops.aten.add_.Tensor", {{"self", tensor("b_m")}}, {tensor("a")})}, {"a"});
  EXPECT_THAT(text_of(own),
              HasSubstr("a = torch.add_(self.bn.mean) if self.bn.training else self.bn.mean"));
}

TEST(Translate, SizesAreNumbersAndUnusedOnesAreLeftOut) {
  const std::string text = text_of(program(
      {node("torch.ops.aten.sym_size.int", {{"self", tensor("x")}, {"dim", std::int64_t{0}}},
            {size("n")}),
       node("_operator.floordiv", {{"a", size("n")}, {"b", std::int64_t{2}}}, {size("half")}),
       node("math.unknown", {{"a", size("n")}}, {size("unused")}),
       node("torch.ops.aten._assert_scalar.default", {{"self", size("unused")}}, {}),
       node("torch.ops.aten.relu.default", {{"self", tensor("x")}, {"size", size("half")}},
            {tensor("y")})},
      {"y"}));
  EXPECT_THAT(text, HasSubstr("n = x.size(0)\n    half = n // 2\n    y = "
                              "torch.relu(x, half)\n"));
  EXPECT_THAT(text, Not(HasSubstr("unused")));
}

/// n is the number of samples; m is what the node gives.
std::string number_text(const std::string& target, const Argument& a, const Argument& b) {
  return text_of(program({node("torch.ops.aten.sym_size.int",
                               {{"self", tensor("x")}, {"dim", std::int64_t{0}}}, {size("n")}),
                          node(target, {{"a", a}, {"b", b}}, {size("m")}),
                          node("torch.ops.aten.relu.default",
                               {{"self", tensor("x")}, {"p", size("m")}}, {tensor("y")})},
                         {"y"}));
}

TEST(Translate, NumbersAreComputedAsInPython) {
  const Argument n = size("n");
  EXPECT_THAT(number_text("_operator.and_", n, std::int64_t{3}), HasSubstr("m = n & 3\n"));
  EXPECT_THAT(number_text("_operator.or_", n, std::int64_t{3}), HasSubstr("m = n | 3\n"));
  EXPECT_THAT(number_text("_operator.pow", std::int64_t{-2}, n), HasSubstr("(-2) ** (n)"));
}

// LibTorch ends the process where an int is divided by 0, or the least one by -1.
TEST(Translate, DivisorsAreLookedAt) {
  EXPECT_THAT(number_text("_operator.mod", std::int64_t{7}, size("n")),
              HasSubstr("assert n != 0\n    m = 7 % n if n > 0 or n < -1 else 0\n"));
  EXPECT_THAT(number_text("_operator.floordiv", size("n"), std::int64_t{-1}),
              HasSubstr("n // -1 if -1 > 0 or -1 < -1 else -(n)"));
}

TEST(Translate, FreeSizesHaveTheirBounds) {
  ExportedProgram own = one("torch.ops.aten.relu.default");
  own.range_constraints["s0"] = {2, 64};
  EXPECT_THAT(text_of(own), HasSubstr("x.size(1) == 3, "));
  EXPECT_THAT(text_of(own), Not(HasSubstr(">=")));
  own.range_constraints["s0"] = {9, 64};
  EXPECT_THAT(text_of(own), HasSubstr("x.size(0) >= 9 and x.size(0) <= 64"));
  EXPECT_THAT(text_of(own), HasSubstr("[s0, 3], s0 >= 9, s0 <= 64"));
}

TEST(Translate, NamesThatAreWordsOfTheLanguageAreChanged) {
  const std::string text = text_of(program(
      {node("torch.ops.aten.relu.default", {{"self", tensor("x")}}, {tensor("while")}),
       node("torch.ops.aten.relu.default", {{"self", tensor("while")}}, {tensor("a; import os")})},
      {"a; import os"}));
  EXPECT_THAT(text, HasSubstr("while_ = torch.relu(x)\n    a_import_os = torch.relu(while_)"));
}

TEST(Translate, SeveralResultsAreATuple) {
  const ExportedProgram own =
      program({node("torch.ops.aten.max.dim", {{"self", tensor("x")}}, {tensor("v"), tensor("i")})},
              {"v", "i"});
  const std::string text = text_of(own);
  EXPECT_THAT(text, HasSubstr("-> Tuple[Tensor, Tensor]:"));
  EXPECT_THAT(text, HasSubstr("v, i = torch.max(x)\n    return (v, i)\n"));
}

TEST(Translate, NamedResultsAreADictionary) {
  ExportedProgram own =
      program({node("torch.ops.aten.max.dim", {{"self", tensor("x")}}, {tensor("v"), tensor("i")})},
              {"v", "i"});
  own.out_spec.kind = TreeSpec::Kind::dict;
  own.out_spec.keys = {std::string("logits"), std::string("places")};
  EXPECT_THAT(text_of(own), HasSubstr("return {\"logits\": v, \"places\": i}"));
}

TEST(RefusedTranslation, ResultsOfOneName) {
  ExportedProgram own = program(
      {node("torch.ops.aten.relu.default", {{"self", tensor("x")}}, {tensor("y")})}, {"y", "x"});
  TreeSpec inner;
  inner.kind = TreeSpec::Kind::dict;
  inner.keys = {std::string("b")};
  inner.children.resize(1);
  own.out_spec.kind = TreeSpec::Kind::dict;
  own.out_spec.keys = {std::string("a.b"), std::string("a")};
  own.out_spec.children = {TreeSpec{}, inner};
  EXPECT_THAT(refusal_of(own), HasSubstr("two results of the name 'a.b'"));
}

TEST(Translate, TwoProgramsAreChosenByTheMode) {
  const ExportedProgram train = one("torch.ops.aten.dropout.default", {{"train", true}});
  const ExportedProgram eval = one("torch.ops.aten.relu.default");
  const Translation both = translate({&train, &eval}, Schemas(), "model 'm.pt2'");
  EXPECT_THAT(both.module.methods, HasSubstr("y = torch.dropout(x, True)"));
  EXPECT_THAT(both.module.methods, HasSubstr("if self.training:\n        return "
                                             "self.train_program(x)\n    return "
                                             "self.eval_program(x)\n"));
  EXPECT_EQ(both.module.parameters.size(), 1u);
  EXPECT_EQ(both.stored.size(), 4u);  // of both programs
}

TEST(RefusedTranslation, OperatorsThatPyTorchDoesNotHave) {
  EXPECT_EQ(refusal_of(one("torch.ops.aten.unknown.default")),
            "model 'm.pt2' cannot be translated:\nnode 'y' (torch.ops.aten.unknown.default) is an "
            "operator that this version of LibTorch does not have: export with an older PyTorch, "
            "or without what calls it");
}

// A keyword becomes a part of the source, so that it must be one that PyTorch declares.
TEST(RefusedTranslation, KeywordsThatAreMore) {
  ExportedProgram own = one("torch.ops.aten.relu.default", {{"p", 0.5}});
  own.graph.nodes[0].inputs[1].kind = NamedArgument::Kind::keyword;
  EXPECT_THAT(text_of(own), HasSubstr("torch.relu(x, p=0.5)"));
  own.graph.nodes[0].inputs[1].name = "p=1)\n    torch.save(x, \"f\")\n    z = (x";
  EXPECT_THAT(refusal_of(own), HasSubstr("which its operator does not take"));
}

TEST(RefusedTranslation, OperatorsOfPyTorchAlone) {
  for (const char* name :
       {"max_pool2d_with_indices_backward", "_unsafe_index", "_sparse_coo_tensor_unsafe"}) {
    EXPECT_THAT(refusal_of(one("torch.ops.aten." + std::string(name) + ".default")),
                HasSubstr("only PyTorch itself calls"));
  }
  EXPECT_THAT(text_of(one("torch.ops.aten._unsafe_view.default")),
              HasSubstr("torch._unsafe_view(x)"));
}

TEST(RefusedTranslation, NamesThatAreOneName) {
  ExportedProgram own = one("torch.ops.aten.relu.default");
  own.input_specs[1] = BufferInput{"b_m", "fc.w\x01", true};
  own.weights["fc.w\x01"];
  own.input_specs[0] = ParameterInput{"p_w", "fc.w\x02"};
  own.weights["fc.w\x02"];
  EXPECT_THAT(refusal_of(own), HasSubstr("which are one name here"));
  own.input_specs[1] = BufferInput{"b_m", "bn.training", true};
  own.weights["bn.training"];
  EXPECT_THAT(refusal_of(own), HasSubstr("whose name a module needs itself"));
}

TEST(RefusedTranslation, AllNodesAtOnce) {
  std::vector<Node> nodes;
  for (const char* result : {"a", "b", "c", "d", "e"})
    nodes.push_back(node("torch.ops.mine.f.default", {{"self", tensor("x")}}, {tensor(result)}));
  const std::string message = refusal_of(program(std::move(nodes), {"e"}));
  EXPECT_THAT(message, HasSubstr("node 'c' (torch.ops.mine.f.default) is an operator of 'mine'"));
  EXPECT_THAT(message, HasSubstr("and 2 more nodes"));
}

TEST(RefusedTranslation, ProgramsThatWereDecomposed) {
  ExportedProgram own = one("torch.ops.aten.relu.default");
  own.output_specs.insert(own.output_specs.begin(), BufferMutation{"y", "bn.mean"});
  EXPECT_THAT(refusal_of(own), HasSubstr("was decomposed (run_decompositions)"));
}

TEST(RefusedTranslation, RegionsThatLackWhatTheyRun) {
  for (const char* target :
       {"torch.ops.higher_order.cond", "torch.ops.higher_order.wrap_with_autocast",
        "torch.ops.higher_order.wrap_with_set_grad_enabled"})
    EXPECT_THAT(refusal_of(one(target)), HasSubstr("cannot be translated")) << target;
}

TEST(RefusedTranslation, RulesWithoutTheirInputs) {
  for (const char* target :
       {"torch.ops.aten.sym_size.int", "_operator.add", "_operator.floordiv", "_operator.neg",
        "torch.sym_ite", "torch.ops.aten.item.default", "torch.ops.aten.lift_fresh_copy.default"}) {
    const ExportedProgram own = program({node(target, {}, {tensor("y")})}, {"y"});
    EXPECT_THAT(refusal_of(own), HasSubstr("lacks its input")) << target;
  }
}

}  // namespace
}  // namespace decent::pt2
