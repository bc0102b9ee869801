#include "decent/onnx/classify/classify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../support/refusal.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using decent::testing::refusal;
using testing::floats;
using testing::node;
using testing::weight;
using testing::with;

/// The classification of one graph, by names of the file.
class Classes {
 public:
  explicit Classes(Graph graph, const std::vector<std::string>& unfreeze = {})
      : graph_(std::move(graph)), all_(classify(graph_, unfreeze)) {}

  const Classified& of(const std::string& name) const {
    for (const auto& [tensor, classified] : all_.initializers) {
      if (tensor->name == name) return classified;
    }
    for (const auto& [node, classified] : all_.own) {
      if (node->outputs.front() == name) return classified;
    }
    throw std::out_of_range(name);
  }
  Role role(const std::string& name) const { return of(name).role; }
  std::size_t own() const { return all_.own.size(); }

 private:
  Graph graph_;
  Classification all_;
};

TEST(Classify, TakesWeightsBySlotsAndThroughViews) {
  const Classes classes(testing::graph(
      {weight("fc.weight", {4, 2}), weight("fc.bias", {4}), weight("onnx::MatMul_7", {4, 3})},
      {node("Gemm", {"x", "fc.weight", "fc.bias"}, {"h"}),
       node("Transpose", {"onnx::MatMul_7"}, {"t"}),
       node("MatMul", {"h", "t"}, {"y"}, "/head/out/MatMul")}));
  EXPECT_EQ(classes.role("fc.weight"), Role::trainable);
  EXPECT_EQ(classes.of("fc.bias").reason, "bias of Gemm");
  EXPECT_EQ(classes.role("onnx::MatMul_7"), Role::trainable);
  EXPECT_EQ(classes.of("onnx::MatMul_7").name, "head.out.weight");
}

TEST(Classify, TakesStatisticsForBuffers) {
  const Classes classes(testing::graph(
      {weight("bn.weight", {3}), weight("bn.bias", {3}), weight("bn.running_mean", {3}),
       weight("bn.running_var", {3})},
      {node("BatchNormalization",
            {"x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, {"y"})}));
  EXPECT_EQ(classes.role("bn.weight"), Role::trainable);
  EXPECT_EQ(classes.role("bn.running_mean"), Role::buffer);
  EXPECT_EQ(classes.role("bn.running_var"), Role::buffer);
}

TEST(Classify, JudgesWhatIsOnlyAddedOrMultiplied) {
  const Classes classes(testing::graph(
      {weight("gamma", {2, 3}), weight("val_1", {1, 3}), weight("onnx::Add_5", {2, 3}),
       weight("val_3", {}), weight("pixel.mean", {3, 1}), floats("mask", {2}, {0, -INFINITY})},
      {node("Mul", {"x", "gamma"}, {"a"}), node("Add", {"a", "val_1"}, {"b"}),
       node("Add", {"b", "onnx::Add_5"}, {"c"}), node("Mul", {"c", "val_3"}, {"d"}),
       node("Sub", {"d", "pixel.mean"}, {"e"}), node("Add", {"e", "mask"}, {"y"})}));
  EXPECT_EQ(classes.role("gamma"), Role::trainable);
  EXPECT_EQ(classes.role("val_1"), Role::trainable);
  EXPECT_EQ(classes.role("onnx::Add_5"), Role::ambiguous);
  EXPECT_EQ(classes.role("val_3"), Role::constant);
  EXPECT_EQ(classes.role("pixel.mean"), Role::ambiguous);
  EXPECT_EQ(classes.role("mask"), Role::constant);
  EXPECT_EQ(classes.of("mask").reason, "values beyond 1e4, as masks have");
}

TEST(Classify, TakesParametersThatGoThroughFunctions) {
  const Classes classes(testing::graph(
      {weight("mixer.A_log", {2, 3}), weight("conv.weight.original1", {2, 3}),
       weight("onnx::Exp_5", {2, 3}), weight("attn.table", {2, 3}), weight("var", {2, 3})},
      {node("Exp", {"mixer.A_log"}, {"a"}), node("ReduceL2", {"conv.weight.original1"}, {"n"}),
       node("Div", {"conv.weight.original1", "n"}, {"w"}), node("Exp", {"onnx::Exp_5"}, {"e"}),
       node("Resize", {"attn.table"}, {"t"}), node("Sqrt", {"var"}, {"s"}),
       node("Sum", {"x", "a", "w", "e", "t", "s"}, {"y"})}));
  EXPECT_EQ(classes.role("mixer.A_log"), Role::trainable);
  EXPECT_EQ(classes.of("mixer.A_log").reason, "read by Exp, and named like a parameter");
  EXPECT_EQ(classes.role("conv.weight.original1"), Role::trainable);
  EXPECT_EQ(classes.role("onnx::Exp_5"), Role::constant);
  EXPECT_EQ(classes.of("onnx::Exp_5").reason, "read by Exp");
  EXPECT_EQ(classes.role("attn.table"), Role::ambiguous);
  EXPECT_EQ(classes.role("var"), Role::ambiguous);
}

TEST(Classify, KeepsConstantsConstant) {
  const Classes classes(testing::graph(
      {testing::integers("shape", {2, -1}), weight("low", {}), weight("unread.weight", {3})},
      {node("Reshape", {"x", "shape"}, {"r"}), node("Clip", {"r", "low"}, {"y"})}));
  EXPECT_EQ(classes.of("shape").reason, "int64");
  EXPECT_EQ(classes.role("low"), Role::ambiguous);  // one element under a module's name
  EXPECT_EQ(classes.role("unread.weight"), Role::constant);
  EXPECT_EQ(classes.of("unread.weight").reason, "no node reads it");
}

TEST(Classify, DoesNotTakeForAWeightWhatIsJoinedToData) {
  const Classes classes(testing::graph(
      {weight("val_4", {2, 3}), weight("class_token", {1, 3}), weight("w", {3, 3})},
      {node("Concat", {"x", "val_4"}, {"a"}), node("Concat", {"a", "class_token"}, {"b"}),
       node("MatMul", {"b", "w"}, {"y"})}));
  EXPECT_EQ(classes.role("val_4"), Role::ambiguous);
  EXPECT_EQ(classes.role("class_token"), Role::trainable);
  EXPECT_EQ(classes.role("w"), Role::trainable);
}

TEST(Classify, BelievesMetadataFirst) {
  Graph graph =
      testing::graph({weight("scale", {}), weight("table", {4, 2})},
                     {node("Mul", {"x", "scale"}, {"h"}), node("MatMul", {"h", "table"}, {"y"})});
  const std::string key = "pkg.torch.export.graph_signature.InputSpec.kind";
  graph.value_infos = {testing::value("scale"), testing::value("table")};
  graph.value_infos[0].metadata = {{key, "PARAMETER"}};
  graph.value_infos[1].metadata = {{key, "BUFFER"}};
  const Classes classes(std::move(graph));
  EXPECT_EQ(classes.role("scale"), Role::trainable);
  EXPECT_EQ(classes.role("table"), Role::constant);
}

TEST(Classify, GivesMergedTensorsBack) {
  const Classes classes(testing::graph(
      {floats("norm.bias", {2}, {0, 0}), weight("onnx::MatMul_1", {2, 2}),
       floats("onnx::Conv_3", {2}, {1, 1})},
      {node("Identity", {"norm.bias"}, {"bn.running_mean"}, "Identity_0"),
       node("Identity", {"onnx::MatMul_1"}, {"onnx::MatMul_2"}, "Identity_1"),
       node("Identity", {"onnx::Conv_3"}, {"onnx::Conv_4"}, "Identity_2"),
       node("Identity", {"norm.bias"}, {"/Identity_output_0"}, "/Identity"),
       node("BatchNormalization",
            {"x", "onnx::Conv_3", "norm.bias", "bn.running_mean", "onnx::Conv_4"}, {"h"}),
       node("MatMul", {"h", "onnx::MatMul_1"}, {"i"}),
       node("MatMul", {"i", "onnx::MatMul_2"}, {"j"}),
       node("Add", {"j", "/Identity_output_0"}, {"y"})}));
  EXPECT_EQ(classes.own(), 2U);
  EXPECT_EQ(classes.role("norm.bias"), Role::trainable);
  EXPECT_EQ(classes.role("bn.running_mean"), Role::buffer);
  EXPECT_EQ(classes.role("onnx::Conv_4"), Role::buffer);
}

TEST(Classify, LooksIntoBranches) {
  auto branch = std::make_shared<Graph>();
  branch->initializers = {weight("branch.weight", {2, 2})};
  branch->nodes = {node("Identity", {"branch.weight"}, {"r"})};
  branch->outputs = {testing::value("r")};
  const Classes classes(testing::graph(
      {}, {with(with(node("If", {"x"}, {"w"}), "then_branch", branch), "else_branch", branch),
           node("MatMul", {"x", "w"}, {"y"})}));
  EXPECT_EQ(classes.of("branch.weight").reason, "weight of MatMul");
}

// Loop(h0, w0) with Tanh(MatMul(h, w)) and w as it came.
Node loop_over(const std::string& state, const std::string& carried) {
  auto body = std::make_shared<Graph>();
  body->inputs = {testing::value("i"), testing::value("c"), testing::value("h"),
                  testing::value("w")};
  body->nodes = {node("MatMul", {"h", "w"}, {"m"}), node("Tanh", {"m"}, {"t"}),
                 node("Identity", {"w"}, {"w_out"})};
  body->outputs = {testing::value("c"), testing::value("t"), testing::value("w_out")};
  return with(node("Loop", {"trips", "", state, carried}, {"h_last", "w_last"}), "body", body);
}

TEST(Classify, FollowsWeightsThroughLoops) {
  const Classes classes(testing::graph(
      {weight("W__1", {2, 2}), weight("start__2", {1, 2}), floats("zeros__3", {1, 2}, {0, 0})},
      {loop_over("start__2", "W__1"), node("Add", {"h_last", "zeros__3"}, {"a"}),
       node("MatMul", {"a", "w_last"}, {"y"})}));
  EXPECT_EQ(classes.role("W__1"), Role::trainable);
  EXPECT_EQ(classes.of("W__1").reason, "weight of MatMul");
  EXPECT_EQ(classes.role("start__2"), Role::ambiguous);
  EXPECT_EQ(classes.of("start__2").reason, "read by Loop");
}

TEST(Classify, TakesNoZerosThatALoopBeginsWithForAWeight) {
  const Classes classes(testing::graph({weight("w", {2, 2}), floats("zeros__3", {1, 2}, {0, 0})},
                                       {loop_over("zeros__3", "w")}));
  EXPECT_EQ(classes.role("zeros__3"), Role::constant);
}

TEST(Classify, SeesTheElementsThatAScanGoesOver) {
  auto body = std::make_shared<Graph>();
  body->inputs = {testing::value("h"), testing::value("w")};
  body->nodes = {node("MatMul", {"h", "w"}, {"m"})};
  body->outputs = {testing::value("m")};
  const Node scan = with(with(node("Scan", {"x", "layers"}, {"y"}), "body", body),
                         "num_scan_inputs", std::int64_t{1});
  EXPECT_EQ(Classes(testing::graph({weight("layers", {3, 2, 2})}, {scan})).of("layers").reason,
            "weight of MatMul");
}

TEST(Classify, DoesNotTrainTheUnreadBiasOfAGemm) {
  Graph graph = testing::graph({weight("w", {2, 2}), weight("bias", {2})},
                               {with(node("Gemm", {"x", "w", "bias"}, {"y"}), "beta", 0.F)});
  EXPECT_EQ(Classes(graph).of("bias").reason, "no node reads it");
  graph.nodes.front().attributes.front().value = 1.F;
  EXPECT_EQ(Classes(graph).role("bias"), Role::trainable);
}

TEST(Classify, ANumberInTheCodeOfAnExportedModelIsAWeightOnlyInAWeightsPlace) {
  Graph graph =
      testing::graph({weight("/Constant_output_0", {3}), weight("/Constant_1_output_0", {3, 3})},
                     {node("Add", {"x", "/Constant_output_0"}, {"h"}),
                      node("MatMul", {"h", "/Constant_1_output_0"}, {"y"})});
  EXPECT_EQ(Classes(graph).role("/Constant_output_0"), Role::trainable);
  for (Tensor& tensor : graph.initializers) tensor.is_literal = true;
  const Classes classes(graph);
  EXPECT_EQ(classes.role("/Constant_output_0"), Role::ambiguous);
  EXPECT_EQ(classes.of("/Constant_output_0").reason,
            "added or multiplied, and no parameter of the exported model");
  EXPECT_EQ(classes.role("/Constant_1_output_0"), Role::trainable);
}

TEST(Classify, TakesWhatTf2onnxNumbersForNoName) {
  const Classes classes(testing::graph({weight("const_fold_opt__12", {2, 3})},
                                       {node("Add", {"x", "const_fold_opt__12"}, {"y"})}));
  EXPECT_EQ(classes.role("const_fold_opt__12"), Role::ambiguous);
}

TEST(Classify, TakesVariablesOfTensorFlow) {
  const Classes classes(testing::graph(
      {weight("gru/gru_cell/split/ReadVariableOp:0", {2, 3}), weight("gru/table/Const:0", {2, 3})},
      {node("Split", {"gru/gru_cell/split/ReadVariableOp:0"}, {"a", "b"}),
       node("Add", {"x", "a"}, {"h"}), node("Add", {"h", "gru/table/Const:0"}, {"y"})}));
  EXPECT_EQ(classes.of("gru/gru_cell/split/ReadVariableOp:0").reason,
            "added or multiplied, and named like a parameter");
  EXPECT_EQ(classes.role("gru/table/Const:0"), Role::ambiguous);
}

TEST(Classify, GivesUniqueNamesAndNoTensorsThatAreFolders) {
  const Classes classes(
      testing::graph({weight("a", {2, 2}), weight("a.b", {2, 2}), weight("training", {2, 2}),
                      weight("_c", {2, 2}), weight("d e", {2, 2}), weight("d/e", {2, 2})},
                     {node("Einsum", {"a", "a.b", "training", "_c", "d e", "d/e"}, {"y"})}));
  EXPECT_EQ(classes.of("a").name, "a");
  EXPECT_EQ(classes.of("a.b").name, "a_b_1");
  EXPECT_EQ(classes.of("training").name, "training_1");
  EXPECT_EQ(classes.of("_c").name, "p_c");
  EXPECT_EQ(classes.of("d e").name, "d_e");
  EXPECT_EQ(classes.of("d/e").name, "d_e_1");
}

TEST(Classify, TakesNoBiasForTheMeanOfANormThatIsOneNumber) {
  const Classes classes(
      testing::graph({weight("val_size", {1}), weight("val_one", {1}), weight("val_bias", {3})},
                     {node("Add", {"val_size", "val_one"}, {"s"}), node("Sqrt", {"s"}, {"r"}),
                      node("Mul", {"val_bias", "r"}, {"b"}), node("Mul", {"x", "r"}, {"h"}),
                      node("Add", {"h", "b"}, {"y"})}));
  EXPECT_EQ(classes.role("val_bias"), Role::trainable);
}

TEST(Classify, TakesWhatIsUnderARootButNormalizesNothingForAmbiguous) {
  const Classes classes(
      testing::graph({weight("spread", {3}), weight("val_eps", {})},
                     {node("Add", {"spread", "val_eps"}, {"s"}), node("Sqrt", {"s"}, {"r"}),
                      node("Add", {"x", "r"}, {"y"})}));
  EXPECT_EQ(classes.role("spread"), Role::ambiguous);
  EXPECT_EQ(classes.of("spread").reason, "under a root, as a variance is");
}

TEST(Classify, TakesATensorThatIsAVarianceAndAWeightForAConstant) {
  const Classes classes(
      testing::graph({weight("merged", {3}), weight("val_eps", {})},
                     {node("Add", {"merged", "val_eps"}, {"s"}), node("Sqrt", {"s"}, {"r"}),
                      node("Div", {"x", "r"}, {"h"}), node("Mul", {"h", "merged"}, {"y"})}));
  EXPECT_EQ(classes.role("merged"), Role::constant);
  EXPECT_EQ(classes.of("merged").reason,
            "running variance of a batch norm in inference form, and a weight that the export "
            "merged with it");
}

TEST(Classify, TakesMembersOfASequentialByTheirNames) {
  const Classes classes(testing::graph(
      {weight("0.bw", {2, 3}), weight("1.0.gain", {2, 3}), weight("0.5", {2, 3})},
      {node("Mul", {"x", "0.bw"}, {"a"}, "/0/Mul"), node("Mul", {"a", "1.0.gain"}, {"b"}, "/1/Mul"),
       node("Mul", {"b", "0.5"}, {"y"}, "/2/Mul")}));
  EXPECT_EQ(classes.of("0.bw").name, "0.bw");
  EXPECT_EQ(classes.role("0.bw"), Role::trainable);
  EXPECT_EQ(classes.of("1.0.gain").name, "1.0.gain");
  EXPECT_EQ(classes.role("0.5"), Role::ambiguous);  // a number of the exporter
}

Graph with_frozen_table() {
  return testing::graph({weight("onnx::Add_5", {2, 3}), testing::integers("shape", {2, 3})},
                        {node("Add", {"x", "onnx::Add_5"}, {"h"}, "/pos/Add"),
                         node("Reshape", {"h", "shape"}, {"y"})});
}

TEST(Classify, Unfreezes) {
  EXPECT_EQ(Classes(with_frozen_table()).role("onnx::Add_5"), Role::ambiguous);
  EXPECT_EQ(Classes(with_frozen_table(), {"pos.*"}).role("onnx::Add_5"), Role::trainable);
  EXPECT_EQ(Classes(with_frozen_table(), {"onnx::Add_5"}).role("onnx::Add_5"), Role::trainable);
}

TEST(Classify, RefusesToUnfreezeWhatIsNotThere) {
  EXPECT_EQ(refusal([] { Classes(with_frozen_table(), {"pos.bais"}); }),
            "model.unfreeze: 'pos.bais' matches no tensor of the model; did you mean 'pos.bias'?");
  EXPECT_EQ(refusal([] { Classes(with_frozen_table(), {"shape"}); }),
            "model.unfreeze: 'shape' matches 'shape', which cannot be trained: int64");
}

}  // namespace
}  // namespace decent::onnx
