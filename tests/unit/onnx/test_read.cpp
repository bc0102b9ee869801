// What a model is in memory after it is read.

#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class ReadModel : public ModelFiles {};

std::vector<std::string> names_of(const std::vector<ValueInfo>& values) {
  std::vector<std::string> names;
  for (const ValueInfo& each : values) names.push_back(each.name);
  return names;
}

TEST_F(ReadModel, GivesTheHeader) {
  const Model model =
      read(model_bytes(relu(bytes(2, "main") + bytes(16, entry("a", "1"))), 20,
                       bytes(2, "pytorch") + bytes(3, "2.11") + bytes(14, entry("k", "v")) +
                           bytes(8, bytes(1, "ai.onnx.ml") + number(2, 3)),
                       10));
  EXPECT_EQ(model.path, folder.path() / "m.onnx");
  EXPECT_EQ(model.ir_version, 10);
  EXPECT_EQ(model.opset(), 20);
  EXPECT_THAT(model.opsets, ElementsAre(Pair("", 20), Pair("ai.onnx.ml", 3)));
  EXPECT_EQ(model.producer_name, "pytorch");
  EXPECT_EQ(model.producer_version, "2.11");
  EXPECT_THAT(model.metadata, ElementsAre(Pair("k", "v")));
  EXPECT_EQ(model.graph.name, "main");
  EXPECT_THAT(model.graph.metadata, ElementsAre(Pair("a", "1")));
  ASSERT_EQ(model.files.size(), 1U);
}

TEST_F(ReadModel, GivesNodesWithTheirPlacesInTheFile) {
  const std::string norm =
      node("LayerNormalization", {"x", "", "b"}, {"y"},
           bytes(3, "norm") + int_attribute("axis", -1) + bytes(9, entry("scope", "m")));
  const std::string bytes_of_file =
      model_bytes(input("x") + output("y") +
                  initializer(tensor("b", 1, {1}, bytes(9, raw({1.F})))) + node_field(norm));
  const Model model = read(bytes_of_file);
  const auto text_at = [&](ByteRange range) {
    return bytes_of_file.substr(range.begin, range.size());
  };
  ASSERT_EQ(model.graph.nodes.size(), 1U);
  const Node& read_node = model.graph.nodes[0];
  EXPECT_EQ(read_node.name, "norm");
  EXPECT_EQ(read_node.op_type, "LayerNormalization");
  EXPECT_EQ(read_node.domain, "");
  EXPECT_THAT(read_node.inputs, ElementsAre("x", "", "b"));
  EXPECT_THAT(read_node.outputs, ElementsAre("y"));
  EXPECT_THAT(read_node.metadata, ElementsAre(Pair("scope", "m")));
  EXPECT_EQ(text_at(read_node.field), node_field(norm));
  EXPECT_EQ(text_at(read_node.input_fields[2]), bytes(1, "b"));
  EXPECT_EQ(text_at(read_node.output_fields[0]), bytes(2, "y"));
  const Attribute* axis = read_node.find("axis");
  ASSERT_NE(axis, nullptr);
  EXPECT_EQ(std::get<std::int64_t>(axis->value), -1);
  EXPECT_EQ(text_at(axis->field), int_attribute("axis", -1));
  EXPECT_EQ(text_at(model.graph.initializers[0].fields[0]), bytes(9, raw({1.F})));
  EXPECT_EQ(read_node.find("epsilon"), nullptr);
}

TEST_F(ReadModel, GivesEveryKindOfAttribute) {
  const auto attribute = [](std::string_view name, int type, std::string_view fields) {
    return bytes(5, bytes(1, name) + number(20, type) + std::string(fields));
  };
  const std::string t = tensor("", 7, {2}, packed(7, {3, -4}));
  const std::string more =
      attribute("f", 1, real(2, 0.5F)) + attribute("i", 2, number(3, -7)) +
      attribute("s", 3, bytes(4, "text")) + attribute("t", 4, bytes(5, t)) +
      attribute("fs", 6, real(7, 1) + real(7, 2)) +
      attribute("packed", 6, bytes(7, raw({3.F, 4.F}))) +
      attribute("is", 7, number(8, 1) + packed(8, {2, -3})) +
      attribute("ss", 8, bytes(9, "a") + bytes(9, "")) +
      attribute("ts", 9, bytes(10, t) + bytes(10, t)) + attribute("empty", 7, "") +
      attribute("zero", 2, "") + attribute("tp", 13, bytes(14, "")) +
      bytes(5, bytes(1, "old") + number(3, 9));  // of the first versions: no type
  const Model model =
      read(model_bytes(input("x") + output("y") + node_field(node("Op", {"x"}, {"y"}, more))));
  const Node& node = model.graph.nodes[0];
  const auto get = [&](std::string_view name) { return node.find(name)->value; };
  EXPECT_EQ(std::get<float>(get("f")), 0.5F);
  EXPECT_EQ(std::get<std::int64_t>(get("i")), -7);
  EXPECT_EQ(std::get<std::string>(get("s")), "text");
  EXPECT_THAT(as<std::int64_t>(std::get<Tensor>(get("t")).elements()), ElementsAre(3, -4));
  EXPECT_THAT(std::get<std::vector<float>>(get("fs")), ElementsAre(1, 2));
  EXPECT_THAT(std::get<std::vector<float>>(get("packed")), ElementsAre(3, 4));
  EXPECT_THAT(std::get<std::vector<std::int64_t>>(get("is")), ElementsAre(1, 2, -3));
  EXPECT_THAT(std::get<std::vector<std::string>>(get("ss")), ElementsAre("a", ""));
  EXPECT_EQ(std::get<std::vector<Tensor>>(get("ts")).size(), 2U);
  EXPECT_TRUE(std::get<std::vector<std::int64_t>>(get("empty")).empty());
  EXPECT_EQ(std::get<std::int64_t>(get("zero")), 0);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(get("tp")));
  EXPECT_EQ(std::get<std::int64_t>(get("old")), 9);
}

TEST_F(ReadModel, GivesTypesAndShapesOfValues) {
  const std::string shape = bytes(
      2, bytes(1, number(1, 3)) + bytes(1, bytes(2, "N")) + bytes(1, "") + bytes(1, number(1, -1)));
  const std::string tensor_type = bytes(1, number(1, 10) + shape);
  const std::string in = bytes(1, "x") + bytes(2, tensor_type) + bytes(4, entry("k", "v"));
  const std::string sequence = bytes(1, "q") + bytes(2, bytes(4, bytes(1, tensor_type)));
  const std::string map = bytes(1, "m") + bytes(2, bytes(5, number(1, 7)));
  const std::string nested =
      bytes(1, "n") + bytes(2, bytes(4, bytes(1, bytes(4, bytes(1, tensor_type)))));
  const Model model = read(model_bytes(
      bytes(11, in) + output("y") + node_field(node("Relu", {"x"}, {"y"})) + bytes(13, sequence) +
      bytes(13, map) + bytes(13, nested) + bytes(13, bytes(1, "untyped"))));
  const ValueInfo& x = model.graph.inputs.at(0);
  EXPECT_EQ(x.kind, ValueInfo::Kind::tensor);
  EXPECT_EQ(x.type, ElementType::float16);
  EXPECT_THAT(x.metadata, ElementsAre(Pair("k", "v")));
  ASSERT_TRUE(x.shape && x.shape->size() == 4);
  EXPECT_EQ((*x.shape)[0].value, 3);
  EXPECT_EQ((*x.shape)[1].parameter, "N");
  EXPECT_FALSE((*x.shape)[1].value || (*x.shape)[2].value);
  EXPECT_FALSE((*x.shape)[3].value) << "negative: free";
  const std::vector<ValueInfo>& others = model.graph.value_infos;
  EXPECT_THAT(names_of(others), ElementsAre("q", "m", "n", "untyped"));
  EXPECT_EQ(others[0].kind, ValueInfo::Kind::sequence);
  EXPECT_EQ(others[0].type, ElementType::float16);
  EXPECT_EQ(others[1].kind, ValueInfo::Kind::other);
  EXPECT_EQ(others[2].kind, ValueInfo::Kind::other);
  EXPECT_EQ(others[3].type, ElementType::undefined);
  EXPECT_FALSE(others[3].shape);
}

TEST_F(ReadModel, AnInputWithAnInitializerIsNoInput) {
  const Model model = read(model_bytes(input("x") + input("w") + output("y") +
                                           initializer(tensor("w", 1, {}, bytes(9, raw({1.F})))) +
                                           node_field(node("Mul", {"x", "w"}, {"y"})),
                                       9, "", 3));
  EXPECT_THAT(names_of(model.graph.inputs), ElementsAre("x"));
  EXPECT_EQ(model.graph.initializers.size(), 1U);
}

TEST_F(ReadModel, GraphsInsideSeeTheValuesAround) {
  const std::string inner = output("z") + node_field(node("Add", {"x", "w"}, {"z"})) +
                            initializer(tensor("w", 1, {}, bytes(9, raw({1.F}))));
  const std::string branches = graph_attribute("then_branch", inner) +
                               graph_attribute("else_branch", inner);  // both may make 'z'
  const Model model = read(model_bytes(input("x") + output("y") + input("c") +
                                       node_field(node("If", {"c"}, {"y"}, branches))));
  const auto& graph =
      std::get<std::shared_ptr<Graph>>(model.graph.nodes[0].find("then_branch")->value);
  EXPECT_EQ(graph->nodes.at(0).op_type, "Add");
  EXPECT_EQ(graph->initializers.at(0).name, "w");
}

TEST_F(ReadModel, GivesFunctions) {
  const std::string slope = bytes(5, bytes(1, "alpha") + bytes(21, "slope") + number(20, 1));
  const std::string function = bytes(1, "F") + bytes(4, "a") + bytes(5, "b") + bytes(6, "slope") +
                               bytes(11, bytes(1, "axis") + number(3, 1) + number(20, 2)) +
                               bytes(10, "local") + bytes(13, "v1") + bytes(9, number(2, 18)) +
                               bytes(7, node("LeakyRelu", {"a"}, {"b"}, slope));
  const Model model =
      read(model_bytes(input("x") + output("y") +
                           node_field(node("F", {"x"}, {"y"}, bytes(7, "local") + bytes(8, "v1"))),
                       17, bytes(25, function) + bytes(8, bytes(1, "local") + number(2, 1))));
  const Function& read_function = model.functions.at(0);
  EXPECT_EQ(read_function.domain, "local");
  EXPECT_EQ(read_function.name, "F");
  EXPECT_EQ(read_function.overload, "v1");
  EXPECT_THAT(read_function.inputs, ElementsAre("a"));
  EXPECT_THAT(read_function.outputs, ElementsAre("b"));
  EXPECT_THAT(read_function.attributes, ElementsAre("slope"));
  EXPECT_EQ(read_function.default_attributes.at(0).name, "axis");
  EXPECT_THAT(read_function.opsets, ElementsAre(Pair("", 18)));
  EXPECT_EQ(read_function.nodes.at(0).attributes.at(0).ref_attr_name, "slope");
  EXPECT_EQ(model.graph.nodes[0].domain, "local");
  EXPECT_EQ(model.graph.nodes[0].overload, "v1");
}

TEST_F(ReadModel, UnknownFieldsAndTheTwoNamesOfTheStandardDomain) {
  const Model model = read(number(1, 8) + bytes(7, relu(bytes(31, "later"))) +
                           bytes(8, bytes(1, "ai.onnx") + number(2, 17)) + bytes(8, number(2, 17)) +
                           bytes(20, "training_info") + number(1000, 5));
  EXPECT_THAT(model.opsets, ElementsAre(Pair("", 17)));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
