#include <gtest/gtest.h>

#include "decent/pt2/analyse/mode.h"
#include "decent/pt2/analyse/writes.h"
#include "programs.h"

namespace decent::pt2 {
namespace {

using testing::node;
using testing::program;
using testing::Schemas;
using testing::tensor;

Node dropout(bool train, const std::string& result) {
  return node("torch.ops.aten.dropout.default",
              {{"input", tensor("x")}, {"p", 0.5}, {"train", train}}, {tensor(result)});
}

Node batch_norm(const Argument& running_mean, bool training) {
  return node("torch.ops.aten.batch_norm.default",
              {{"input", tensor("x")}, {"running_mean", running_mean}, {"training", training}},
              {tensor("bn")});
}

TEST(Modes, InAnExportInTrainModeWhatIsOffStaysOff) {
  const ExportedProgram both = program({dropout(true, "a"), dropout(false, "b")}, {"b"});
  const ModeSurvey survey = survey_modes(both);
  EXPECT_EQ(survey.mode, ExportedMode::train);
  ASSERT_EQ(survey.switches.size(), 2u);
  EXPECT_NE(survey.following(both.graph.nodes[0]), nullptr);
  EXPECT_EQ(survey.following(both.graph.nodes[1]), nullptr);
}

TEST(Modes, InAnExportInEvalModeAllIsSwitched) {
  const ExportedProgram eval = program({dropout(false, "a"), dropout(false, "b")}, {"b"});
  const ModeSurvey survey = survey_modes(eval);
  EXPECT_EQ(survey.mode, ExportedMode::eval);
  for (const Node& each : eval.graph.nodes) EXPECT_NE(survey.following(each), nullptr);
}

TEST(Modes, OneOfTwoProgramsStaysAsItIs) {
  const ExportedProgram train = program({dropout(true, "a")}, {"a"});
  EXPECT_EQ(survey_fixed_modes(train).following(train.graph.nodes[0]), nullptr);
}

TEST(Modes, ABatchNormHasTheModeOfTheModuleOfItsStatistics) {
  const ExportedProgram own = program({batch_norm(tensor("b_m"), true)}, {"bn"});
  const ModeSurvey survey = survey_modes(own);
  ASSERT_EQ(survey.switches.size(), 1u);
  EXPECT_EQ(survey.switches[0].module, "bn");
}

TEST(Modes, ABatchNormWithoutStatisticsHasNoMode) {
  const ExportedProgram none = program({batch_norm(None{}, true)}, {"bn"});
  EXPECT_EQ(survey_modes(none).mode, ExportedMode::unknown);
}

TEST(Modes, DropoutOfAttentionIsOnWhereItsProbabilityIsNot0) {
  const auto attention = [](double p) {
    return program({node("torch.ops.aten.scaled_dot_product_attention.default",
                         {{"query", tensor("x")}, {"dropout_p", p}}, {tensor("y")})},
                   {"y"});
  };
  EXPECT_EQ(survey_modes(attention(0.1)).mode, ExportedMode::train);
  EXPECT_EQ(survey_modes(attention(0.0)).mode, ExportedMode::unknown);
}

// The file leaves out p = 0.5, which is the default.
TEST(Modes, NoiseIsStochasticDepthWhereItIsDividedByItsProbability) {
  const auto noise = [](double divisor) {
    return program({node("torch.ops.aten.bernoulli_.float", {{"self", tensor("x")}}, {tensor("n")}),
                    node("torch.ops.aten.div_.Tensor", {{"self", tensor("n")}, {"other", divisor}},
                         {tensor("d")})},
                   {"d"});
  };
  const ModeSurvey depth = survey_modes(noise(0.5));
  ASSERT_EQ(depth.switches.size(), 1u);
  EXPECT_EQ(depth.switches[0].kind, ModeSwitch::Kind::noise);
  EXPECT_EQ(depth.switches[0].in_evaluation, 0.5);
  EXPECT_TRUE(survey_modes(noise(0.25)).switches.empty());
}

// transformers' form: x / p, times floor(rand + p).
Node quotient(double p) {
  return node("torch.ops.aten.div.Tensor", {{"self", tensor("x")}, {"other", p}}, {tensor("q")});
}

std::vector<Node> floor_of_noise(double p) {
  return {node("torch.ops.aten.rand.default", {}, {tensor("r")}),
          node("torch.ops.aten.add.Tensor", {{"self", tensor("r")}, {"other", p}}, {tensor("s")}),
          node("torch.ops.aten.floor.default", {{"self", tensor("s")}}, {tensor("n")})};
}

ExportedProgram floor_program(double p, const Node& divisor, std::vector<Node> more = {}) {
  std::vector<Node> nodes = floor_of_noise(p);
  nodes.push_back(divisor);
  nodes.push_back(node("torch.ops.aten.mul.Tensor", {{"self", tensor("q")}, {"other", tensor("n")}},
                       {tensor("y")}));
  for (Node& each : more) nodes.push_back(std::move(each));
  return program(std::move(nodes), {"y"});
}

TEST(Modes, NoiseIsStochasticDepthWhereItsOtherFactorIsDividedByItsProbability) {
  const ExportedProgram depth = floor_program(0.75, quotient(0.75));
  const ModeSurvey survey = survey_modes(depth);
  ASSERT_EQ(survey.switches.size(), 2u);
  EXPECT_EQ(survey.switches[0].node, &depth.graph.nodes[2]);
  EXPECT_EQ(survey.switches[0].in_evaluation, 1);
  EXPECT_EQ(survey.switches[1].node, &depth.graph.nodes[3]);
  EXPECT_EQ(survey.switches[1].kind, ModeSwitch::Kind::divisor);
  EXPECT_TRUE(find_random(depth, survey, Schemas()).empty());
}

TEST(Modes, OtherNoiseIsRandomInBothModes) {
  const auto is_random = [](const ExportedProgram& own) {
    const ModeSurvey survey = survey_modes(own);
    const auto random = find_random(own, survey, Schemas());
    return survey.switches.empty() && random == std::vector<const Node*>{&own.graph.nodes[0]};
  };
  EXPECT_TRUE(is_random(floor_program(0.75, quotient(0.5))));  // of another probability
  const Node reader = node("torch.ops.aten.relu.default", {{"self", tensor("q")}}, {tensor("z")});
  EXPECT_TRUE(is_random(floor_program(0.75, quotient(0.75), {reader})));  // which needs q as it is
  const Node mask = node("torch.ops.aten.relu.default", {{"self", tensor("n")}}, {tensor("z")});
  EXPECT_TRUE(is_random(floor_program(0.75, quotient(0.75), {mask})));
}

// ---- writes into buffers

TEST(BufferWrites, AreFoundThroughViews) {
  const ExportedProgram own =
      program({node("torch.ops.aten.view.default", {{"self", tensor("b_m")}}, {tensor("v")}),
               node("torch.ops.aten.add_.Tensor", {{"self", tensor("v")}}, {tensor("a")}),
               node("torch.ops.aten.mul_.Tensor", {{"self", tensor("x")}}, {tensor("m")})},
              {"m"});
  const BufferWrites writes = find_buffer_writes(own, Schemas());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes.begin()->first, &own.graph.nodes[1]);
  ASSERT_EQ(writes.begin()->second.tensors.size(), 1u);
  EXPECT_EQ(writes.begin()->second.tensors[0].buffer, "bn.mean");
  EXPECT_TRUE(writes.begin()->second.gives_written);
}

TEST(BufferWrites, AreFoundInGraphsInside) {
  auto region = std::make_shared<Graph>();
  region->inputs = {tensor("inner")};
  region->nodes = {node("torch.ops.aten.add_.Tensor", {{"self", tensor("inner")}}, {tensor("a")})};
  region->outputs = {tensor("a")};
  const ExportedProgram own =
      program({node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                    {{"", false}, {"", GraphArgument{"region", region}}, {"", tensor("b_m")}},
                    {tensor("y")}),
               node("torch.ops.aten.mul_.Tensor", {{"self", tensor("y")}}, {tensor("m")})},
              {"m"});
  EXPECT_EQ(find_buffer_writes(own, Schemas()).size(), 2u);
}

TEST(BufferWrites, OfParametersAndConstantsAreFound) {
  ExportedProgram own =
      program({node("torch.ops.aten.mul_.Tensor", {{"self", tensor("p_w")}}, {tensor("a")}),
               node("torch.ops.aten.add_.Tensor", {{"self", tensor("c_c")}}, {tensor("b")})},
              {"b"});
  own.input_specs.emplace_back(TensorConstantInput{"c_c", "count"});
  const BufferWrites writes = find_buffer_writes(own, Schemas());
  ASSERT_EQ(writes.size(), 2u);
  const BufferWrite& first = writes.at(&own.graph.nodes[0]).tensors.at(0);
  EXPECT_EQ(first.buffer, "fc.weight");
  EXPECT_EQ(first.kind, OwnTensor::Kind::parameter);
  const BufferWrite& second = writes.at(&own.graph.nodes[1]).tensors.at(0);
  EXPECT_EQ(second.buffer, "count");
  EXPECT_EQ(second.kind, OwnTensor::Kind::constant);
}

// torch.tensor([1., 2.]) in forward is exported as a constant with detach_ behind it.
TEST(BufferWrites, DetachingIsNone) {
  const ExportedProgram own = program(
      {node("torch.ops.aten.detach_.default", {{"self", tensor("b_m")}}, {tensor("y")})}, {"y"});
  EXPECT_TRUE(find_buffer_writes(own, Schemas()).empty());
}

TEST(Statistics, AreThoseOfNormsThatTrain) {
  const auto statistics = [](bool training, bool follows) {
    const ExportedProgram own = program({batch_norm(tensor("b_m"), training)}, {"bn"});
    const ModeSurvey survey = follows ? survey_modes(own) : survey_fixed_modes(own);
    std::vector<std::string> names;
    for (const OwnTensor& each : find_statistics(own, Schemas(), survey))
      names.push_back(each.name);
    return names;
  };
  const std::vector<std::string> mean = {"bn.mean"};
  EXPECT_EQ(statistics(true, true), mean);
  EXPECT_EQ(statistics(false, true), mean);  // an export in eval mode trains all the same
  EXPECT_EQ(statistics(true, false), mean);
  EXPECT_TRUE(statistics(false, false).empty());
}

// ---- writes behind a node

Node view_of(const std::string& value, const std::string& result) {
  return node("torch.ops.aten.view.default", {{"self", tensor(value)}}, {tensor(result)});
}

Node written(const std::string& value, const std::string& result) {
  return node("torch.ops.aten.mul_.Tensor", {{"self", tensor(value)}}, {tensor(result)});
}

bool first_is_written_later(std::vector<Node> nodes) {
  const ExportedProgram own = program(std::move(nodes), {"end"});
  return find_written_later(own, Schemas()).contains(&own.graph.nodes[0]);
}

TEST(WrittenLater, SharesMemoryWithTheBaseAndWithViews) {
  EXPECT_TRUE(first_is_written_later({view_of("x", "v"), written("v", "end")}));
  EXPECT_TRUE(first_is_written_later({view_of("x", "v"), written("x", "end")}));
  EXPECT_TRUE(first_is_written_later({view_of("x", "v"), view_of("v", "w"), written("w", "end")}));
  const Node relu = node("torch.ops.aten.relu.default", {{"self", tensor("v")}}, {tensor("end")});
  EXPECT_FALSE(first_is_written_later({view_of("x", "v"), relu}));
  EXPECT_FALSE(first_is_written_later({view_of("x", "v"), relu, written("end", "m")}));
}

TEST(WrittenLater, DoesNotMindWritesBefore) {
  const ExportedProgram own = program({written("x", "m"), view_of("m", "end")}, {"end"});
  EXPECT_FALSE(find_written_later(own, Schemas()).contains(&own.graph.nodes[1]));
}

TEST(WrittenLater, AnOperatorOfHigherOrderMayWriteWhatItIsGiven) {
  auto region = std::make_shared<Graph>();
  region->inputs = {tensor("inner")};
  region->nodes = {view_of("inner", "a")};
  region->outputs = {tensor("a")};
  const ExportedProgram own =
      program({view_of("x", "v"),
               node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                    {{"", false}, {"", GraphArgument{"region", region}}, {"", tensor("v")}},
                    {tensor("end")})},
              {"end"});
  const auto found = find_written_later(own, Schemas());
  EXPECT_TRUE(found.contains(&own.graph.nodes[0]));
  EXPECT_TRUE(found.contains(&region->nodes[0]));  // whoever runs the graph may write its input
}

TEST(BufferWrites, ReadingIsNone) {
  const ExportedProgram own = program(
      {node("torch.ops.aten.relu.default", {{"self", tensor("b_m")}}, {tensor("y")})}, {"y"});
  EXPECT_TRUE(find_buffer_writes(own, Schemas()).empty());
}

}  // namespace
}  // namespace decent::pt2
