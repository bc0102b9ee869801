// The form for inference, byte by byte.

#include "decent/onnx/write/write.h"
#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::HasSubstr;

class InferenceForm : public ModelFiles {
 public:
  /// The bytes of a model when it is written without changes.
  std::string written(std::string_view content) {
    const Model model = read(content);
    write_model(model, {}, folder / "out.onnx");
    return get("out.onnx");
  }
  std::string refusal_to_write(std::string_view content) {
    return decent::testing::refusal([&] { written(content); });
  }
};

// BatchNormalization with its initializers, as a part of a graph that makes y of x.
std::string norm(Names outputs, std::string_view attributes) {
  std::string graph = input("x") + output("y");
  for (const char* name : {"s", "b", "m", "v"}) {
    graph += initializer(tensor(name, 1, {1}, bytes(9, raw({1.F}))));
  }
  return graph +
         node_field(node("BatchNormalization", {"x", "s", "b", "m", "v"}, outputs, attributes));
}

TEST_F(InferenceForm, ThatAModelHasIsTheSameFile) {
  for (const std::string& model :
       {model_bytes(relu()), model_bytes(norm({"y"}, int_attribute("training_mode", 0))),
        model_bytes(norm({"y"}, "")),
        model_bytes(input("x") + output("y") + node_field(node("Dropout", {"x"}, {"y", "mask"}))),
        model_bytes(input("x") + output("y") +
                    node_field(node("Dropout", {"x", "", ""}, {"y"})))}) {
    EXPECT_EQ(written(model), model);
  }
}

TEST_F(InferenceForm, OfBatchNormalization) {
  const std::string momentum = bytes(5, bytes(1, "momentum") + real(2, 0.9F) + number(20, 1));
  EXPECT_EQ(
      written(model_bytes(norm({"y", "rm", "rv"}, momentum + int_attribute("training_mode", 1)))),
      model_bytes(norm({"y"}, momentum + int_attribute("training_mode", 0))));
}

TEST_F(InferenceForm, OfBatchNormalizationBeforeOpset14) {
  EXPECT_EQ(written(model_bytes(norm({"y", "", "rv", "sm", "sv"}, ""), 9)),
            model_bytes(norm({"y"}, ""), 9));
}

TEST_F(InferenceForm, OfDropout) {
  const std::string begin = input("x") + output("y") +
                            initializer(tensor("r", 1, {}, bytes(9, raw({.5F})))) +
                            initializer(tensor("t", 9, {}, bytes(9, "\1")));
  EXPECT_EQ(
      written(model_bytes(begin + node_field(node("Dropout", {"x", "r", "t"}, {"y", "mask"})))),
      model_bytes(begin + node_field(node("Dropout", {"x", "r"}, {"y", "mask"}))));
}

TEST_F(InferenceForm, OfGraphsInside) {
  const auto model = [](Names inputs) {
    const std::string inner = output("z") + node_field(node("Dropout", inputs, {"z"}));
    const std::string outer =
        output("q") + node_field(node("If", {"c"}, {"q"}, graph_attribute("then_branch", inner)));
    return model_bytes(input("x") + input("c") + output("y") +
                       node_field(node("If", {"c"}, {"y"}, graph_attribute("else_branch", outer))));
  };
  EXPECT_EQ(written(model({"x", "", "c"})), model({"x", ""}));
}

TEST_F(InferenceForm, OfFunctions) {
  const auto model = [](Names outputs, const std::string& mode) {
    const std::string call = node("F", {"x"}, {"y"}, bytes(7, "f") + int_attribute("mode", 1));
    return model_bytes(
        input("x") + output("y") + node_field(call), 17,
        bytes(25,
              bytes(1, "F") + bytes(10, "f") + bytes(4, "a") + bytes(5, "b") + bytes(6, "mode") +
                  bytes(7, node("BatchNormalization", {"a", "a", "a", "a", "a"}, outputs, mode)) +
                  bytes(9, number(2, 17))) +
            bytes(8, bytes(1, "f") + number(2, 1)));
  };
  const std::string reference =
      bytes(5, bytes(1, "training_mode") + bytes(21, "mode") + number(20, 2));
  EXPECT_EQ(written(model({"b", "rm", "rv"}, reference)),
            model({"b"}, int_attribute("training_mode", 0)));
}

TEST_F(InferenceForm, OfOperatorsOfOtherDomainsIsTheirOwn) {
  const std::string model =
      model_bytes(input("x") + output("y") +
                      node_field(node("Dropout", {"x", "x", "x"}, {"y"}, bytes(7, "other"))),
                  17, bytes(8, bytes(1, "other") + number(2, 1)));
  EXPECT_EQ(written(model), model);
}

TEST_F(InferenceForm, LengthsTakeFewerBytesWhereTheyBecomeSmaller) {
  // 130 bytes with the third input and 124 without: lengths of two bytes become one.
  const std::string name(60, 'n');
  const std::string begin = input("x") + output("y");
  const auto dropout = [&](Names inputs) {
    return model_bytes(begin +
                       node_field(node("Dropout", inputs, {"y"}, bytes(3, std::string(50, 'd')))) +
                       initializer(tensor(name, 9, {}, bytes(9, "\1"))));
  };
  EXPECT_EQ(written(dropout({"x", "", name})), dropout({"x", ""}));
}

TEST_F(InferenceForm, DoesNotExistWhereTrainingsOutputsAreUsed) {
  EXPECT_THAT(
      refusal_to_write(model_bytes(norm({"z", "rm"}, int_attribute("training_mode", 1)) +
                                   node_field(node("Add", {"z", "rm"}, {"y"}, bytes(3, "sum"))))),
      HasSubstr(
          "node that makes 'z' (BatchNormalization) makes 'rm' in training only, and node "
          "'sum' (Add) uses it: the model has no form for inference; model.export_mode: train "
          "writes it as it is"));
  EXPECT_THAT(refusal_to_write(model_bytes(norm({"y", "rm"}, "") + output("rm"))),
              HasSubstr("makes 'rm' in training only, and an output of the graph uses it"));
  const std::string inner = output("rm");
  EXPECT_THAT(refusal_to_write(model_bytes(
                  norm({"y", "rm"}, "") +
                  node_field(node("If", {"x"}, {"z"}, graph_attribute("then_branch", inner))))),
              HasSubstr("and an output of the graph uses it"));
}

TEST_F(InferenceForm, NamesOfOtherBranchesAreOtherValues) {
  const auto branches = [](Names of_norm) {
    const std::string one =
        output("a") + node_field(node("BatchNormalization", {"x", "x", "x", "x", "x"}, of_norm));
    const std::string other = output("rm") + node_field(node("Relu", {"x"}, {"rm"}));
    return model_bytes(input("x") + output("y") +
                       node_field(node("If", {"x"}, {"y"},
                                       graph_attribute("then_branch", one) +
                                           graph_attribute("else_branch", other))));
  };
  EXPECT_EQ(written(branches({"a", "rm"})), branches({"a"}));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
