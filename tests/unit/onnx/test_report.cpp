#include "decent/onnx/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../support/refusal.h"
#include "decent/onnx/report/gradient_paths.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using decent::testing::refusal;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::node;
using testing::weight;

GradientStep step(const std::string& op_type, std::vector<std::string> inputs,
                  std::vector<std::string> outputs, bool flows = true) {
  return {"node '" + outputs.front() + "' (" + op_type + ")", op_type, std::move(inputs),
          std::move(outputs), flows};
}

/// x -> MatMul(a) -> h; h -> Round -> r -> MatMul(b) -> y; MatMul(c) -> z.
struct Example {
  Model model;
  Classification classification;
  Translation translation;

  Example() {
    model.path = "model.onnx";
    model.opsets = {{"", 17}};
    model.producer_name = "pytorch";
    model.graph =
        testing::graph({weight("a", {2, 2}), weight("b", {2, 2}), weight("c", {2, 2})}, {});
    model.graph.nodes = {node("MatMul", {"x", "a"}, {"h"}, "/one/MatMul"),
                         node("Round", {"h"}, {"r"}),
                         node("MatMul", {"r", "b"}, {"y"}, "/two/MatMul"),
                         node("MatMul", {"x", "c"}, {"z"}, "/three/MatMul")};
    model.graph.outputs = {testing::value("y"), testing::value("z")};
    classification = classify(model.graph, {});
    translation.nodes = 4;
    translation.operators = {{"MatMul", 3}, {"Round", 1}};
    translation.steps = {step("MatMul", {"x", "a"}, {"h"}), step("Round", {"h"}, {"r"}, false),
                         step("MatMul", {"r", "b"}, {"y"}), step("MatMul", {"x", "c"}, {"z"})};
  }

  GradientPaths paths(const std::vector<std::string>& outputs) const {
    return find_gradient_paths(model, classification, translation, outputs);
  }
  std::vector<std::string> report(Detail detail) const {
    const std::map<std::string, std::size_t> patterns = {{"GELU", 2}};
    return import_report({model, model, patterns, classification, translation}, detail);
  }
};

TEST(GradientPaths, NamesTheOperatorThatCuts) {
  const GradientPaths paths = Example().paths({"y"});
  ASSERT_EQ(paths.cut.size(), 1U);
  EXPECT_EQ(paths.cut[0].name, "a");
  EXPECT_EQ(paths.cut[0].node, "node 'r' (Round)");
  EXPECT_THAT(paths.unconnected, ElementsAre("c"));
}

TEST(GradientPaths, FollowsTheOutputsAskedFor) {
  const Example example;
  EXPECT_THAT(example.paths({"z"}).cut, IsEmpty());
  EXPECT_THAT(example.paths({"z"}).unconnected, ElementsAre("a", "b"));
  EXPECT_THAT(example.paths({}).unconnected, IsEmpty());
}

TEST(GradientPaths, AWeightThatIsCutIsAnErrorUnlessItIsFrozen) {
  const GradientPaths paths = Example().paths({"y"});
  EXPECT_EQ(
      refusal([&] { check_gradient_paths(paths, {}); }),
      "no gradient reaches 1 weight:\n'a' is behind node 'r' (Round), which has none\n"
      "model.freeze: [a] leaves such weights as they are; model.output chooses another output");
  const std::vector<std::string> frozen = {"a*"};
  EXPECT_EQ(refusal([&] { check_gradient_paths(paths, frozen); }), "accepted");
}

TEST(Report, SaysWhatIsInTheFile) {
  const std::vector<std::string> lines = Example().report(Detail::brief);
  EXPECT_THAT(
      lines, Contains("ONNX: opset 17, written by pytorch; 4 nodes, of which 0 are computed once"));
  EXPECT_THAT(lines, Contains("operators: MatMul 3, Round 1"));
  EXPECT_THAT(lines, Contains("recognised: GELU 2"));
  EXPECT_THAT(lines, Contains("trainable: 3 tensors, 12 elements"));
  EXPECT_THAT(lines, Contains("  weight of MatMul: 3 (12), a, b, c"));
  EXPECT_THAT(Example().report(Detail::full), Contains("  b float32[2, 2]: weight of MatMul"));
}

TEST(Report, WarnsOfAFixedBatch) {
  Example example;
  (*example.model.graph.inputs[0].shape)[0].value = 4;
  EXPECT_THAT(example.report(Detail::brief),
              Contains("input 'x' has a first dimension of 4 in the file: where that is the batch, "
                       "train at that "
                       "size, or export with dynamic_shapes (dynamic_axes)"));
}

TEST(Report, NamesSharedTensors) {
  Example example;
  example.model.graph.nodes[3].inputs = {"x", "a"};
  example.classification = classify(example.model.graph, {});
  EXPECT_THAT(example.report(Detail::brief),
              Contains("shared by several modules, tied or merged by the export as equal, and "
                       "trained as one: 'a' "
                       "(one, three)"));
}

TEST(Report, ListsParametersThatTheExportFoldedAway) {
  Example example;
  example.model.graph.metadata = {{"pkg.torch.export.ExportedProgram.graph_signature",
                                   "\n# inputs\np_a: PARAMETER target='a'\np_bn: PARAMETER "
                                   "target='bn.weight'\nb_m: BUFFER target='bn.mean'\n"}};
  EXPECT_THAT(missing_parameters(example.model), ElementsAre("bn.weight"));
}

TEST(Report, AdvisesOnAmbiguousTensors) {
  Example example;
  example.model.graph.initializers = {weight("onnx::Add_3", {2, 2})};
  example.model.graph.nodes = {node("Add", {"x", "onnx::Add_3"}, {"y"}, "/pos/Add")};
  example.classification = classify(example.model.graph, {});
  const std::vector<std::string> lines = example.report(Detail::brief);
  EXPECT_THAT(
      lines,
      Contains("frozen, though 1 tensor may be weights; model.unfreeze: [name, ..] trains them"));
  EXPECT_THAT(
      lines,
      Contains(
          "  pos.bias ('onnx::Add_3' in the file) float32[2, 2]: added or multiplied: a weight, "
          "or a table that the export made"));
}

// w = base + a, of a kind with `number`; data times w.
void add_sum_of_weights(Graph& graph, int number) {
  const std::string base = "onnx::Add_" + std::to_string(number);
  const std::string made = "w" + std::to_string(number);
  graph.initializers.push_back(weight(base, {2, 2}));
  graph.nodes.push_back(node("Add", {base, "a"}, {made}, "/l." + std::to_string(number) + "/Add"));
  graph.nodes.push_back(node("MatMul", {"x", made}, {made + "_y"}));
}

TEST(Report, NamesEveryFrozenTensorThatGoesIntoAWeightBeforeTables) {
  Example example;
  Graph& graph = example.model.graph;
  graph.initializers.push_back(weight("onnx::Sub_1", {2}));
  graph.initializers.push_back(weight("onnx::Add_9", {8, 2}));
  graph.nodes.push_back(node("Sub", {"x", "onnx::Sub_1"}, {"s"}));
  graph.nodes.push_back(node("Add", {"x", "onnx::Add_9"}, {"t"}));
  for (const int number : {10, 11, 12, 13, 14}) add_sum_of_weights(graph, number);
  example.classification = classify(graph, {});
  const std::string reason = "added or multiplied: a weight, or a table that the export made";
  const std::vector<std::string> brief = example.report(Detail::brief);
  EXPECT_THAT(brief, Contains(HasSubstr("frozen, though 7 tensors may be weights")));
  EXPECT_THAT(brief, Contains("  5 x l.*.bias float32[2, 2]: " + reason +
                              "; goes into the weight of MatMul"));
  const std::vector<std::string> full = example.report(Detail::full);
  EXPECT_THAT(full, Contains("  l.13.bias ('onnx::Add_13' in the file) float32[2, 2]: " + reason +
                             "; goes into the weight of MatMul"));
  EXPECT_THAT(full, Contains(HasSubstr("'onnx::Add_9' in the file) float32[8, 2]: " + reason)));
}

TEST(Report, AdviceIsThatOfTheToolThatWroteTheFile) {
  Example example;
  (*example.model.graph.inputs[0].shape)[0].value = 4;
  for (const auto& [producer, advice] :
       std::map<std::string, std::string>{{"pytorch", "export with dynamic_shapes"},
                                          {"tf2onnx", "with None for it in input_signature"},
                                          {"jax2onnx", "to_onnx(f, [(\"batch\", ..)])"},
                                          {"something", "with a free batch dimension"}}) {
    example.model.producer_name = producer;
    const std::vector<std::string> lines = example.report(Detail::brief);
    EXPECT_THAT(lines, Contains(HasSubstr(advice)));
    EXPECT_EQ(std::any_of(lines.begin(), lines.end(),
                          [](const std::string& line) {
                            return line.find("model.train()") != std::string::npos;
                          }),
              producer == "pytorch");
  }
}

TEST(Report, NamesTheLayersOfTensorFlowThatShareATensor) {
  Example example;
  example.model.producer_name = "tf2onnx";
  example.model.graph.nodes = {node("MatMul", {"x", "a"}, {"h"}, "net/one/MatMul"),
                               node("MatMul", {"h", "a"}, {"y"}, "GRU__25")};
  example.classification = classify(example.model.graph, {});
  EXPECT_THAT(example.report(Detail::full),
              Contains("shared by several modules, tied or merged by the export as equal, and "
                       "trained as one: 'a' (GRU__25, net/one)"));
}

}  // namespace
}  // namespace decent::onnx
