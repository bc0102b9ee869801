// Models that do not fit together: each is refused with a message that says what is wrong.

#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Refused {
  std::string name;
  std::string bytes;
  std::string message;  // its beginning, after the file's name
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

// x -> nodes -> y.
std::string chain(std::initializer_list<std::string> nodes, std::string_view more = "") {
  std::string graph = input("x") + output("y") + std::string(more);
  for (const std::string& each : nodes) graph += node_field(each);
  return graph;
}

std::string attribute(std::string_view fields) {
  return model_bytes(chain({node("Op", {"x"}, {"y"}, bytes(3, "n") + bytes(5, fields))}));
}

std::string function(std::string_view name, std::string_view fields) {
  return bytes(25, bytes(1, name) + bytes(10, "f") + bytes(4, "a") + bytes(5, "b") +
                       bytes(9, number(2, 17)) + bytes(9, bytes(1, "f") + number(2, 1)) +
                       std::string(fields));
}

std::string call(std::string_view name, Names inputs, Names outputs) {
  return node(name, inputs, outputs, bytes(7, "f"));
}

std::string with_functions(const std::string& functions) {
  return model_bytes(chain({call("A", {"x"}, {"y"})}), 17,
                     functions + bytes(8, bytes(1, "f") + number(2, 1)));
}

// If bodies inside one another.
std::string nested_graphs(int depth) {
  std::string graph = output("x");
  for (int i = 0; i < depth; ++i) {
    graph = output("x") + node_field(node("If", {"x"}, {}, graph_attribute("then_branch", graph)));
  }
  return model_bytes(chain({node("If", {"x"}, {"y"}, graph_attribute("then_branch", graph))}));
}

// A function that calls the one before twice, and so on.
std::string doubling_functions(int count) {
  std::string functions = function("F0", bytes(7, node("Relu", {"a"}, {"b"})));
  for (int i = 1; i <= count; ++i) {
    const std::string callee = "F" + std::to_string(i - 1);
    functions +=
        function(i == count ? "A" : "F" + std::to_string(i),
                 bytes(7, call(callee, {"a"}, {"c"})) + bytes(7, call(callee, {"c"}, {"b"})));
  }
  return with_functions(functions);
}

std::string calling_functions(int count) {
  std::string functions = function("A", bytes(7, call("F1", {"a"}, {"b"})));
  for (int i = 1; i < count; ++i) {
    functions += function("F" + std::to_string(i),
                          bytes(7, call("F" + std::to_string(i + 1), {"a"}, {"b"})));
  }
  functions += function("F" + std::to_string(count), bytes(7, node("Relu", {"a"}, {"b"})));
  return with_functions(functions);
}

std::string many_nodes(int count) {
  std::string nodes;
  for (int i = 0; i < count; ++i) nodes += node_field("");
  return model_bytes(nodes);
}

const std::string kScalar = tensor("w", 1, {}, bytes(9, raw({1.F})));

const Refused kRefused[] = {
    {"Empty", "", "the file is empty"},
    {"Text", "this is not a model", "not a whole ONNX file: "},
    {"Archive", "PK\x03\x04 and so on", "not a whole ONNX file: "},
    {"NoGraph", number(1, 8) + bytes(8, number(2, 17)), "has no graph"},
    {"NoOutputs", model_bytes(input("x")), "its graph has no outputs"},
    {"NoIrVersion", bytes(7, relu()) + bytes(8, number(2, 17)),
     "is of IR version 0; 3 to 14 are read"},
    {"NewIrVersion", model_bytes(relu(), 17, "", 15), "is of IR version 15; 3 to 14 are read"},
    {"NoOpset", number(1, 8) + bytes(7, relu()), "has no opset_import"},
    {"OldOpset", model_bytes(relu(), 8),
     "is of opset 8; opsets 9 to 28 are read (onnx.version_converter converts)"},
    {"NewOpset", model_bytes(relu(), 99), "is of opset 99; opsets 9 to 28 are read"},
    {"TwoOpsets", model_bytes(relu(), 17, bytes(8, bytes(1, "ai.onnx") + number(2, 18))),
     "imports two versions of the operators of 'ai.onnx', 17 and 18"},
    {"UnknownDomain", model_bytes(chain({node("Relu", {"x"}, {"y"}, bytes(7, "com.acme"))})),
     "node that makes 'y' (Relu) is of domain 'com.acme', whose version opset_import does not "
     "give"},
    {"TwoGraphs", model_bytes(relu(), 17, bytes(7, relu())),
     "not a whole ONNX file: field 7 occurs twice, and may occur once"},
    {"SparseInitializer", model_bytes(relu(bytes(2, "g") + bytes(15, ""))),
     "graph 'g' has a sparse_initializer, which is not read; write it as a dense one"},

    {"UnknownInput", model_bytes(chain({node("Add", {"x", "k"}, {"y"})})),
     "node that makes 'y' (Add) uses 'k', which is no input, no initializer and made by no node"},
    {"Unsorted",
     model_bytes(chain({node("Relu", {"a"}, {"y"}, bytes(3, "second")),
                        node("Relu", {"x"}, {"a"}, bytes(3, "first"))})),
     "node 'second' (Relu) uses 'a' before node 'first' (Relu) makes it; nodes must be sorted, and "
     "none may need its own result"},
    {"Cycle",
     model_bytes(chain(
         {node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})})),
     "node that makes 'a' (Add) uses 'b' before node that makes 'b' (Relu) makes it"},
    {"UsesItself", model_bytes(chain({node("Add", {"x", "y"}, {"y"})})),
     "node that makes 'y' (Add) uses its own output 'y'"},
    {"MadeTwice", model_bytes(chain({node("Relu", {"x"}, {"y"}), node("Tanh", {"x"}, {"y"})})),
     "node that makes 'y' (Tanh) makes 'y', which is there already; every value is made once"},
    {"MadeTwiceByOne", model_bytes(chain({node("Dropout", {"x"}, {"y", "y"})})),
     "node that makes 'y' (Dropout) makes 'y', which is there already"},
    {"ShadowsAround",
     model_bytes(chain({node(
         "If", {"x"}, {"y"},
         graph_attribute("then_branch", output("x") + node_field(node("Relu", {"x"}, {"x"}))))})),
     "node that makes 'x' (Relu) makes 'x', which is there already"},
    {"InnerUnknown",
     model_bytes(chain({node("If", {"x"}, {"y"}, graph_attribute("then_branch", output("z")))})),
     "nothing makes 'z', an output of graph ''"},
    {"InnerStaysInside",
     model_bytes(chain({node("If", {"x"}, {"z"},
                             graph_attribute("then_branch",
                                             output("a") + node_field(node("Relu", {"x"}, {"a"})))),
                        node("Relu", {"a"}, {"y"})})),
     "node that makes 'y' (Relu) uses 'a', which is no input"},
    {"OutputOfNothing", model_bytes(chain({node("Relu", {"x"}, {"z"})})),
     "nothing makes 'y', an output of graph ''"},
    {"InitializerTwice", model_bytes(relu(initializer(kScalar) + initializer(kScalar))),
     "an initializer is named 'w', and so is another value"},
    {"InputTwice", model_bytes(relu(input("x"))), "an input of the graph is named 'x', and so is"},
    {"NamelessInitializer", model_bytes(relu(initializer(tensor("", 1, {}, bytes(9, raw({1.F})))))),
     "an initializer (byte "},
    {"NamelessInput", model_bytes(relu(bytes(11, ""))), "a value that the graph declares (byte "},
    {"NoOperator", model_bytes(chain({bytes(1, "x") + bytes(2, "y") + bytes(3, "n")})),
     "node 'n' () has no operator (op_type)"},
    {"ValueOfUnknownType", model_bytes(relu(bytes(13, value("q", 17)))),
     "value 'q' is of type float8e4m3fn; those that are read are float32"},
    {"ValueOfTwoTypes", model_bytes(relu(bytes(13, value("q") + bytes(2, bytes(1, ""))))),
     "not a whole ONNX file: field 2 occurs twice"},
    {"TypeTwice",
     model_bytes(relu(bytes(13, bytes(1, "q") + bytes(2, bytes(1, "") + bytes(4, ""))))),
     "value 'q' has two types"},

    {"AttributeTwice",
     model_bytes(chain({node("Op", {"x"}, {"y"}, int_attribute("a", 1) + int_attribute("a", 1))})),
     "node that makes 'y' (Op) has the attribute 'a' twice"},
    {"AttributeNameless", attribute(number(3, 1) + number(20, 2)),
     "node 'n' (Op) has an attribute without a name"},
    {"AttributeOfTwoTypes", attribute(bytes(1, "a") + number(3, 1) + real(2, 1) + number(20, 2)),
     "attribute 'a' of node 'n' (Op) has values of two types"},
    {"AttributeOfAnotherType", attribute(bytes(1, "a") + number(3, 1) + number(20, 1)),
     "attribute 'a' of node 'n' (Op) is of type float and has a value of type int"},
    {"AttributeOfUnknownType", attribute(bytes(1, "a") + number(20, 77)),
     "attribute 'a' of node 'n' (Op) has the unknown type 77"},
    {"AttributeOfNoType", attribute(bytes(1, "a")),
     "attribute 'a' of node 'n' (Op) has neither a type nor a value"},
    {"AttributeWithoutTensor", attribute(bytes(1, "a") + number(20, 4)),
     "attribute 'a' of node 'n' (Op) has no value"},
    {"AttributeWithTwoValues",
     attribute(bytes(1, "a") + number(3, 1) + number(3, 2) + number(20, 2)),
     "attribute 'a' of node 'n' (Op) has two values, and may have one"},
    {"SparseAttribute", attribute(bytes(1, "a") + bytes(22, "") + number(20, 11)),
     "attribute 'a' of node 'n' (Op) is of type sparse_tensor, which is not read"},
    {"GraphsAttribute", attribute(bytes(1, "a") + bytes(11, "") + number(20, 10)),
     "attribute 'a' of node 'n' (Op) is of type graphs, which is not read"},
    {"TensorOfAttribute", attribute(bytes(1, "a") + bytes(5, tensor("", 1, {2})) + number(20, 4)),
     "attribute 'a' of node 'n' (Op): has 0 elements, float32 [2] takes 2"},
    {"ReferenceOutsideFunctions", attribute(bytes(1, "a") + bytes(21, "b") + number(20, 2)),
     "attribute 'a' of node 'n' (Op) refers to an attribute of a function, and stands in none"},

    {"FunctionTwice",
     with_functions(function("A", bytes(7, node("Relu", {"a"}, {"b"}))) +
                    function("A", bytes(7, node("Relu", {"a"}, {"b"})))),
     "function 'A' of domain 'f' is there twice"},
    {"FunctionCallsItself", with_functions(function("A", bytes(7, call("A", {"a"}, {"b"})))),
     "function 'A' of domain 'f' calls itself, perhaps through another"},
    {"FunctionsCallOneAnother",
     with_functions(function("A", bytes(7, call("B", {"a"}, {"b"}))) +
                    function("B", bytes(7, call("A", {"a"}, {"b"})))),
     "function 'A' of domain 'f' calls itself, perhaps through another"},
    {"FunctionsThatDouble", doubling_functions(17),
     "has more than 100000 nodes when its functions are put in place of their calls"},
    {"FunctionsThatAreDeep", calling_functions(100),
     "functions call one another more than 100 deep"},
    {"FunctionNameless", with_functions(function("", "")), "a function (byte "},
    {"FunctionSeesNothingAround",
     with_functions(function("A", bytes(7, node("Relu", {"x"}, {"b"})))),
     "node that makes 'b' (Relu) uses 'x', which is no input"},
    {"FunctionWithoutItsOutput",
     with_functions(function("A", bytes(7, node("Relu", {"a"}, {"c"})))),
     "nothing makes 'b', an output of function 'A'"},
    {"FunctionOfOldOpset",
     model_bytes(relu(), 17, bytes(25, bytes(1, "A") + bytes(9, number(2, 7)))),
     "function 'A' is of opset 7; opsets 9 to 28"},
    {"ReferenceToNothing",
     with_functions(
         function("A", bytes(7, node("Relu", {"a"}, {"b"},
                                     bytes(5, bytes(1, "p") + bytes(21, "q") + number(20, 1)))))),
     "node that makes 'b' (Relu) in function 'A' of domain 'f' refers to attribute 'q', which the "
     "function does not have"},
    {"AttributesOfOneName",
     with_functions(
         function("A", bytes(6, "p") + bytes(6, "p") + bytes(7, node("Relu", {"a"}, {"b"})))),
     "function 'A' of domain 'f' has two attributes of one name"},

    {"DeepGraphs", nested_graphs(40), "not a whole ONNX file: messages stand more than 100 deep"},
    {"ManyNodes", many_nodes(100'001), "has more than 100000 nodes, the most that are read"},
};

class RefusedModels : public ModelFiles, public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedModels, AreNamedWithTheReason) {
  EXPECT_THAT(refusal_of(GetParam().bytes), StartsWith(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(All, RefusedModels, ::testing::ValuesIn(kRefused),
                         [](const auto& refused) { return refused.param.name; });

class Limits : public ModelFiles {};

TEST_F(Limits, AreReachedByWhatIsStillRead) {
  EXPECT_EQ(read(doubling_functions(16)).functions.size(), 17U);
  EXPECT_EQ(read(calling_functions(99)).functions.size(), 100U);
  EXPECT_EQ(read(nested_graphs(30)).graph.nodes.size(), 1U);
}

TEST_F(Limits, ObjectsThatOutgrowTheirBytes) {
  std::string attributes;
  for (int i = 0; i < 1'000'000; ++i) attributes += bytes(5, "");
  EXPECT_THAT(
      refusal_of(model_bytes(chain({node("Op", {"x"}, {"y"}, attributes)}))),
      HasSubstr("reading it would need more than 54 MB of memory, the most for a file of 2000"));
}

TEST_F(Limits, ANameOfManyBytesIsCutInMessages) {
  const std::string message =
      refusal_of(model_bytes(chain({node(std::string(1000, 'R') + "\n", {"k"}, {"y"})})));
  EXPECT_LT(message.size(), 300U);
  EXPECT_THAT(message, HasSubstr("(" + std::string(80, 'R') + "..) uses 'k'"));
}

TEST_F(Limits, AMissingFileAndAFolder) {
  EXPECT_THAT(decent::testing::refusal([&] { read_model(folder / "none.onnx"); }),
              HasSubstr("none.onnx': No such file or directory"));
  EXPECT_THAT(decent::testing::refusal([&] { read_model(folder.path()); }),
              HasSubstr("not a file"));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
