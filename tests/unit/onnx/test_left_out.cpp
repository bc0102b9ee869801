// Whatever a file leaves out of a node, or adds to it, the import ends with a translation or with a
// UserError.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../support/refusal.h"
#include "decent/onnx/classify/classify.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/translation.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using decent::testing::refusal;
using testing::floats;
using ::testing::HasSubstr;
using testing::integers;
using testing::node;
using testing::with;
using Names = std::vector<std::string>;

constexpr std::size_t kMostInputs = 6;
constexpr std::size_t kMostOutputs = 5;

Tensor words(const std::string& name) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = ElementType::string;
  tensor.dims = {1};
  tensor.encoding = Encoding::typed;
  return tensor;
}

Tensor whole_number(const std::string& name, std::int64_t value) {
  Tensor tensor = make_tensor({}, std::span(&value, 1));
  tensor.name = name;
  return tensor;
}

// Values of all kinds, "x" and those of `kKinds`.
const Names kKinds = {"x",       "",         "shapeless", "weight", "matrix", "vector",
                      "integer", "integers", "none",      "scalar", "words",  "sequence"};

Model model_of(std::vector<Node> nodes, std::int64_t opset) {
  Model model;
  model.path = "m.onnx";
  model.opsets = {{"", opset}};
  Graph& graph = model.graph;
  graph = testing::graph(
      {testing::weight("weight", {2}), testing::weight("matrix", {2, 2}),
       testing::weight("vector", {1}), whole_number("integer", 3), integers("integers", {2, 0}),
       integers("none", {}), floats("scalar", {}, {0.5F}), words("words")},
      std::move(nodes));
  ValueInfo shapeless = testing::value("shapeless");
  shapeless.shape.reset();
  ValueInfo sequence = testing::value("sequence");
  sequence.kind = ValueInfo::Kind::sequence;
  graph.inputs.push_back(shapeless);
  graph.inputs.push_back(sequence);
  return model;
}

const std::string kImported = "accepted";

// All of the import that needs no LibTorch: kImported, or what it is refused with.
std::string import(Model model) {
  return refusal([&] {
    recognise_patterns(model.graph, model.opset());
    const Classification classification = classify(model.graph, {});
    translate(model, classification, {});
  });
}

std::string import_node(const Node& node, std::int64_t opset = 20) {
  return import(model_of({testing::node("MatMul", {"x", "matrix"}, {"product"}), node}, opset));
}

Names outputs(std::size_t count) {
  Names names = {"y"};
  while (names.size() < count) names.push_back("y" + std::to_string(names.size()));
  return names;
}

// Every output is read, the last by the graph.
void read_outputs(Model& model, const Names& names) {
  for (const std::string& name : names) model.graph.outputs.push_back(testing::value(name));
}

std::vector<std::int64_t> versions(const Operator& known) {
  return {std::max(known.first_opset, kOldestOpset), std::min(known.last_opset, kNewestOpset)};
}

TEST(NameList, HasNoNamesBeyondItsEnd) {
  const NameList none;
  EXPECT_EQ(none.front() + none.back() + none[7], "");
  const NameList two = {"a", ""};
  EXPECT_EQ(two[0], "a");
  EXPECT_EQ(two[1] + two[2] + two[std::size_t{1} << 62], "");
  EXPECT_EQ(two.size(), 2U);
}

TEST(LeftOut, AnyNumberOfInputsAndOutputsOfEveryOperator) {
  std::size_t imported = 0;
  std::size_t refused = 0;
  for (const Operator& known : operator_table()) {
    for (const std::int64_t opset : versions(known)) {
      for (const std::string& kind : kKinds) {
        for (std::size_t count = 0; count <= kMostInputs; ++count) {
          const Names names = outputs(count % 2 == 0 ? 1 : kMostOutputs);
          Model model = model_of({node(std::string(known.name), Names(count, kind), names)}, opset);
          read_outputs(model, names);
          ++(import(std::move(model)) == kImported ? imported : refused);
        }
      }
    }
  }
  EXPECT_GT(imported, 1000U);
  EXPECT_GT(refused, 10'000U);
}

TEST(LeftOut, AllOutputsOfEveryOperator) {
  for (const Operator& known : operator_table()) {
    for (const std::string& kind : kKinds) {
      const Node made = node(std::string(known.name), Names(2, kind), {});
      EXPECT_EQ(import(model_of({made, node("Relu", {"x"}, {"y"})}, versions(known).back())),
                kImported)
          << known.name << " of " << kind;
    }
  }
}

// The first input is data, and one of those behind it has another kind of value.
TEST(LeftOut, AnyKindOfValueAtEveryPlaceOfEveryOperator) {
  std::size_t imported = 0;
  for (const Operator& known : operator_table()) {
    for (const std::int64_t opset : versions(known)) {
      for (std::size_t count = 2; count <= kMostInputs; ++count) {
        for (std::size_t place = 1; place < count; ++place) {
          for (const std::string& kind : kKinds) {
            Names inputs(count, "x");
            inputs[place] = kind;
            const Node made = node(std::string(known.name), inputs, {"y"});
            if (import(model_of({made}, opset)) == kImported) ++imported;
          }
        }
      }
    }
  }
  EXPECT_GT(imported, 1000U);
}

TEST(LeftOut, GraphsInsideOfNodesWithAnyNumberOfInputsAndOutputs) {
  for (const char* op_type : {"If", "Loop", "Scan", "SequenceMap"}) {
    for (std::size_t given = 0; given < 5; ++given) {
      for (std::size_t taken = 0; taken < 5; ++taken) {
        for (std::size_t made = 0; made < 5; ++made) {
          auto body = std::make_shared<Graph>();
          for (std::size_t i = 0; i < taken; ++i)
            body->inputs.push_back(testing::value("i" + std::to_string(i), 7));
          for (std::size_t i = 0; i < made; ++i) body->outputs.push_back(testing::value("weight"));
          Node loop = node(op_type, Names(given, "integer"), outputs(3));
          for (const char* name : {"body", "then_branch", "else_branch"})
            loop = with(loop, name, body);
          loop = with(loop, "num_scan_inputs", std::int64_t{1});
          Model model = model_of({loop}, 20);
          read_outputs(model, outputs(3));
          import(std::move(model));
        }
      }
    }
  }
}

// Nodes that patterns are made of, in chains of three of which the first lacks its inputs.
TEST(LeftOut, PartsOfPatterns) {
  const Names parts = {"Add",
                       "Cast",
                       "CastLike",
                       "Clip",
                       "Concat",
                       "Constant",
                       "Div",
                       "Equal",
                       "Erf",
                       "Expand",
                       "Gather",
                       "IsNaN",
                       "Less",
                       "MatMul",
                       "Mul",
                       "Pow",
                       "RandomUniformLike",
                       "Reciprocal",
                       "ReduceMean",
                       "Reshape",
                       "Shape",
                       "Sigmoid",
                       "HardSigmoid",
                       "Slice",
                       "Softmax",
                       "Sqrt",
                       "Sub",
                       "Tanh",
                       "Transpose",
                       "Trilu",
                       "Unsqueeze",
                       "Where",
                       "InstanceNormalization",
                       "ConstantOfShape"};
  for (const std::string last : {"Add", "Div", "MatMul", "Mul", "Where"}) {
    for (const std::string& middle : parts) {
      for (const std::string& first : parts) {
        for (const std::size_t inputs : {1U, 2U, 3U}) {
          const Node a = node(first, inputs == 3 ? Names{""} : Names{}, {"a"});
          const Node b = node(middle, Names(inputs, "a"), {"b"});
          Names read = {"b", "x", "scalar"};
          read.resize(inputs);
          import(model_of({a, b, node(last, read, {"y"})}, 20));
        }
      }
    }
  }
}

TEST(LeftOut, MessagesNameTheNode) {
  EXPECT_THAT(import_node(node("LessOrEqual", {}, {"y"})),
              HasSubstr("node 'y' (LessOrEqual) lacks input 0"));
  EXPECT_THAT(import_node(node("Equal", {"integer"}, {"y"})),
              HasSubstr("node 'y' (Equal) lacks input 1"));
  EXPECT_THAT(import_node(node("Where", {"integer", "integer"}, {"y"})),
              HasSubstr("lacks input 2"));
  Model model = model_of({node("Relu", {"x"}, {"y", "z"})}, 20);
  read_outputs(model, {"z"});
  EXPECT_THAT(import(model), HasSubstr("node 'y' (Relu) does not make its output 1, 'z'"));
  EXPECT_THAT(import_node(node("Identity", {"words"}, {"y"})),
              HasSubstr("reads strings, which PyTorch lacks"));
  EXPECT_THAT(import_node(with(node("ConstantOfShape", {"integers"}, {"y"}), "value", words(""))),
              HasSubstr("is about string elements, which PyTorch lacks"));
  EXPECT_THAT(import_node(node("Conv", {"x", "weight"}, {"y"})),
              HasSubstr("has 0 spatial axes; PyTorch has 1 to 3"));
}

TEST(LeftOut, RanksThatNoTensorHas) {
  EXPECT_THAT(import(model_of({node("Gather", {"scalar", "integer"}, {"y"})}, 20)),
              HasSubstr("(Gather) makes a tensor of -1 dimensions; PyTorch has 0 to 64"));
  const Node squeeze = node("Squeeze", {"x"}, {"y"});
  EXPECT_THAT(import(model_of({with(squeeze, "axes", std::vector<std::int64_t>{0, 0, 0})}, 11)),
              HasSubstr("makes a tensor of -1 dimensions"));
  Model model = model_of({node("Relu", {"x"}, {"y"})}, 20);
  model.graph.inputs.front() = testing::value("x", 65);
  EXPECT_THAT(import(model), HasSubstr("input 'x' has 65 dimensions; PyTorch has at most 64"));
}

TEST(LeftOut, AxesThatNoTensorHas) {
  const auto with_axis = [](const std::string& op_type, Names inputs) {
    return with(node(op_type, std::move(inputs), {"y"}), "axis", std::int64_t{1} << 40);
  };
  EXPECT_THAT(import_node(with_axis("Gather", {"shapeless", "integers"})),
              HasSubstr("has axis 1099511627776, which no tensor has"));
  const Node twice =
      with(node("Unsqueeze", {"weight"}, {"y"}), "axes", std::vector<std::int64_t>{2, 2});
  EXPECT_THAT(import_node(twice, 11), HasSubstr("(Unsqueeze) has an axis twice"));
}

TEST(LeftOut, ElementTypesThatAreNone) {
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{29},
                                    std::int64_t{1} << 40, -(std::int64_t{1} << 31)}) {
    EXPECT_THAT(import_node(with(node("Cast", {"product"}, {"y"}), "to", number)),
                HasSubstr("(Cast) has 'to' = " + std::to_string(number) + ", an element type"));
  }
}

TEST(LeftOut, WindowsThatDoNotMove) {
  const auto pool = [](const char* name, std::vector<std::int64_t> values) {
    const Node made =
        with(node("MaxPool", {"x"}, {"y"}), "kernel_shape", std::vector<std::int64_t>{2, 2});
    return import_node(with(made, name, std::move(values)));
  };
  EXPECT_THAT(pool("strides", {0, 1}), HasSubstr("has 0 in 'strides'; 1 to 2147483647 are"));
  EXPECT_THAT(pool("dilations", {1, 1LL << 62}), HasSubstr("in 'dilations'"));
  EXPECT_THAT(pool("pads", {-1LL << 62, 0, 0, 0}), HasSubstr("in 'pads'"));
}

}  // namespace
}  // namespace decent::onnx
