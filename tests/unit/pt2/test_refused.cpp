// Programs that are not what the schema and the graph promise: one message each, which names the
// record and the place in it.

#include "archive_files.h"
#include "decent/pt2/archive/parse.h"

namespace decent::pt2 {
namespace {

using testing::ArchiveFiles;
using testing::changed;
using testing::changed_program;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kProgramRecord = ": record 'models/model.json': ";
const std::string kWeightsRecord = "data/weights/model_weights_config.json";

class Refused : public ArchiveFiles {
 public:
  std::string after(const std::string& from, const std::string& to) {
    const std::string message = refusal_of(changed_program(from, to));
    if (!message.starts_with(kProgramRecord)) return message;
    return message.substr(std::string_view(kProgramRecord).size());
  }
  std::string after_in_weights(const std::string& from, const std::string& to) {
    const std::string message = refusal_of(changed(kWeightsRecord, from, to));
    const std::string begin = ": record '" + kWeightsRecord + "': ";
    if (!message.starts_with(begin)) return message;
    return message.substr(begin.size());
  }
};

TEST_F(Refused, AnotherSchema) {
  EXPECT_THAT(after("\"major\": 8", "\"major\": 9"),
              StartsWith("schema_version is 9.17; schema 8 can be read.\nFrom Python, export"));
}

TEST_F(Refused, WhatIsMissingOrOfAnotherKind) {
  EXPECT_EQ(after("\"graph_module\"", "\"graph\""), "it has no 'graph_module'");
  EXPECT_EQ(after("\"target\": \"torch.ops.aten.add.Tensor\"", "\"target\": null"),
            "graph_module.graph.nodes[1] has no 'target'");
  EXPECT_EQ(after("\"name\": \"other\", \"arg\"", "\"name\": 7, \"arg\""),
            "graph_module.graph.nodes[1].inputs[1].name is 7, not a text");
  EXPECT_EQ(after("\"kind\": 2", "\"kind\": 3"),
            "graph_module.graph.nodes[0].inputs[2].kind is no kind of argument that is known");
  EXPECT_EQ(after("{\"user_output\"", "{\"what\""),
            "graph_module.signature.output_specs[0].what is of a kind that is not known");
  EXPECT_THAT(after("[{\"fqn\": \"\"", "[], \"unused\": [{\"fqn\": \"\""),
              HasSubstr("module_call_graph is empty"));
  EXPECT_THAT(after("\"as_int\": 4}", "\"as_float\": 0.5}"),
              HasSubstr("sizes[0].as_expr.hint.as_float"));
}

TEST_F(Refused, ValuesThatAreNotMadeInOrder) {
  const std::string second =
      "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"linear\"}}";
  const auto with = [&](const std::string& name) {
    return after(second,
                 "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"" + name + "\"}}");
  };
  const std::string node = "node 1 ('torch.ops.aten.add.Tensor'): value ";
  EXPECT_EQ(with("add"), node + "'add' is used before anything makes it");  // by itself
  EXPECT_EQ(with("nothing"), node + "'nothing' is used before anything makes it");
  EXPECT_EQ(
      after("\"arg\": {\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1",
            "\"arg\": {\"as_tensor\": {\"name\": \"add\"}}, \"kind\": 1"),  // a circle
      "node 0 ('torch.ops.aten.linear.default'): value 'add' is used before anything makes it");
  EXPECT_EQ(after("\"outputs\": [{\"as_tensor\": {\"name\": \"linear\"}}]",
                  "\"outputs\": [{\"as_tensor\": {\"name\": \"x\"}}]"),
            "node 0 ('torch.ops.aten.linear.default'): value 'x' is made twice");
  EXPECT_EQ(after("\"linear\": {\"dtype\"", "\"other\": {\"dtype\""),
            "node 0 ('torch.ops.aten.linear.default'): value 'linear' has no type");
  EXPECT_EQ(after("\"outputs\": [{\"as_tensor\": {\"name\": \"add\"}}],\n  \"nodes\"",
                  "\"outputs\": [{\"as_tensor\": {\"name\": \"sum\"}}],\n  \"nodes\""),
            "its outputs: value 'sum' is used before anything makes it");
  EXPECT_EQ(after("\"c_c\": {\"dtype\"", "\"x\": {\"dtype\""),
            "graph_module.graph.tensor_values.x is there twice");
}

TEST_F(Refused, ValuesOfAnotherKind) {
  EXPECT_EQ(after("{\"as_tensor\": {\"name\": \"c_c\"}}, \"kind\": 1",
                  "{\"as_sym_int\": {\"as_name\": \"c_c\"}}, \"kind\": 1"),
            "node 1 ('torch.ops.aten.add.Tensor'): value 'c_c' is used as another kind than it is");
  EXPECT_EQ(after("\"outputs\": [{\"as_tensor\": {\"name\": \"linear\"}}]",
                  "\"outputs\": [{\"as_sym_bool\": {\"as_name\": \"linear\"}}]"),
            "node 0 ('torch.ops.aten.linear.default'): value 'linear' has no type");
}

TEST_F(Refused, InnerGraphsThatReachOut) {
  const std::string inner =
      R"({"as_graph": {"name": "g", "graph": {"inputs": [], "nodes": [], "tensor_values": {},
          "outputs": [{"as_tensor": {"name": "x"}}]}}})";
  EXPECT_EQ(after("{\"as_tensor\": {\"name\": \"c_c\"}}, \"kind\": 1", inner + ", \"kind\": 1"),
            "graph 'g', its outputs: value 'x' is used before anything makes it");
}

TEST_F(Refused, TooManyNodes) {
  const std::string node = R"({"target": "t", "inputs": [], "outputs": [], "metadata": {}}, )";
  std::string many;
  for (std::size_t i = 0; i < kMaxNodes; ++i) many += node;
  EXPECT_EQ(after("\"nodes\": [", "\"nodes\": [" + many),
            "has more than 100000 nodes, the most that are read");
}

TEST_F(Refused, SignatureThatDoesNotFitTheGraph) {
  EXPECT_EQ(after("{\"as_tensor\": {\"name\": \"p_w\"}}, {\"as_tensor\": {\"name\": \"b_b\"}}",
                  "{\"as_tensor\": {\"name\": \"b_b\"}}, {\"as_tensor\": {\"name\": \"p_w\"}}"),
            "input 0 is another in its graph than in its signature");
  EXPECT_EQ(after("{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"add\"}}}}", ""),
            "its graph has 1 output, its signature 0");
  EXPECT_EQ(after("{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"x\"}}}}",
                  "{\"token\": {\"arg\": {\"name\": \"x\"}}}"),
            "in_spec has 1 leaf, the signature 0");
  EXPECT_EQ(after("{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"x\"}}}}",
                  "{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"z\"}}}}"),
            "input 3 is another in its graph than in its signature");
  EXPECT_EQ(after("{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"add\"}}}}",
                  "{\"user_output\": {\"arg\": {\"as_none\": true}}}"),
            "output 0 is another in its graph than in its signature");
  EXPECT_EQ(after("\"parameter_name\": \"w\"", "\"parameter_name\": \"v\""),
            "there are no data of 'v'");
  EXPECT_EQ(after("\"buffer_name\": \"b\", \"persistent\": true",
                  "\"buffer_name\": \"b\", \"persistent\": false"),
            "there are no data of 'b'");
}

TEST_F(Refused, TensorsThatAreNotAsTheGraphSays) {
  EXPECT_EQ(after("\"p_w\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}",
                  "\"p_w\": {\"dtype\": 8, \"sizes\": [{\"as_int\": 2}"),
            "'w' is float32, in the graph float64");
  EXPECT_EQ(after("\"p_w\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}",
                  "\"p_w\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 4}"),
            "'w' has shape [2, 3], in the graph another");
  EXPECT_EQ(
      after("\"p_w\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}",
            "\"p_w\": {\"dtype\": 27, \"sizes\": [{\"as_int\": 2}"),
      "graph_module.graph.tensor_values.p_w.dtype is 27, which is no element type that is known");
}

// ---- tables of tensors ----

TEST_F(Refused, TensorsBeyondTheirRecords) {
  const std::string rest = " elements of its record 'data/weights/weight_0'";
  const std::string w = "\"sizes\": [{\"as_int\": 2}, {\"as_int\": 3}]";
  const auto sizes = [&](const std::string& first, const std::string& second) {
    return after_in_weights(
        w, "\"sizes\": [{\"as_int\": " + first + "}, {\"as_int\": " + second + "}]");
  };
  EXPECT_EQ(sizes("3", "3"), "config.w has shape [3, 3], which asks for more than the 8" + rest);
  EXPECT_THAT(sizes("4611686018427387904", "4611686018427387904"),
              HasSubstr("has a shape that is too large"));
  EXPECT_THAT(sizes("9223372036854775807", "2"), HasSubstr("has a shape that is too large"));
  EXPECT_EQ(sizes("-1", "3"), "config.w has a size that is no number from 0 on");
  EXPECT_EQ(after_in_weights("\"strides\": [{\"as_int\": 3}", "\"strides\": [{\"as_int\": -3}"),
            "config.w has a stride that is no number from 0 on");
  EXPECT_EQ(after_in_weights("\"storage_offset\": {\"as_int\": 6}",
                             "\"storage_offset\": {\"as_int\": 7}"),
            "config.b has shape [2], which asks for more than the 8" + rest);
  EXPECT_EQ(after_in_weights("\"strides\": [{\"as_int\": 3}, {\"as_int\": 1}]",
                             "\"strides\": [{\"as_int\": 3}]"),
            "config.w has another number of strides");
  EXPECT_EQ(
      after_in_weights("\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": false, "
                       "\"tensor_meta\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 2}]",
                       "\"path_name\": \"weight_0\", \"is_param\": true, \"use_pickle\": false, "
                       "\"tensor_meta\": {\"dtype\": 0, \"sizes\": [{\"as_int\": 2}]"),
      "config.b has elements of an unknown type");
}

// A record of 8 elements must not become one of a terabyte.
TEST_F(Refused, ViewsThatRepeatElementsWithoutEnd) {
  const auto repeated = [&](const std::string& sizes) {
    return after_in_weights(
        "\"sizes\": [{\"as_int\": 2}, {\"as_int\": 3}], \"requires_grad\": true, "
        "\"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": "
        "[{\"as_int\": 3}",
        "\"sizes\": [{\"as_int\": " + sizes +
            "}, {\"as_int\": 3}], \"requires_grad\": true, \"device\": "
            "{\"type\": \"cpu\", \"index\": null}, \"strides\": [{\"as_int\": 0}");
  };
  EXPECT_THAT(repeated("1000000000000"), HasSubstr("asks for more than the 8 elements"));
  EXPECT_THAT(repeated("1000"), HasSubstr("'w' has shape [1000, 3], in the graph another"));
}

TEST_F(Refused, TensorsThatOnlyCodeCanMake) {
  const std::string w = "{\"w\": {\"path_name\": \"weight_0\", \"is_param\": true, ";
  EXPECT_EQ(after_in_weights(w + "\"use_pickle\": false", w + "\"use_pickle\": true"),
            "config.w is a tensor of a class of its own, which only its code can make");
  EXPECT_THAT(
      refusal_of(changed("data/constants/model_constants_config.json", "\"tensor_meta\": {",
                         "\"tensor_meta\": null, \"unused\": {")),
      HasSubstr("config.c is an object of a class of its own, which only its code can make"));
  EXPECT_THAT(refusal_of(changed("data/constants/model_constants_config.json", "\"layout\": 7",
                                 "\"layout\": 1")),
              HasSubstr("config.c is sparse; dense tensors can be read"));
}

TEST_F(Refused, TensorsWithoutARecord) {
  EXPECT_EQ(
      refusal_of(changed("data/constants/model_constants_config.json", "tensor_0", "tensor_1")),
      ": damaged: it has no record 'data/constants/tensor_1'");
  EXPECT_EQ(refusal_of(changed("data/constants/model_constants_config.json", "tensor_0",
                               "../weights/weight_0")),
            ": record 'data/constants/model_constants_config.json': config.c.path_name is "
            "'../weights/weight_0', which does not begin with 'tensor_'");
  EXPECT_EQ(
      after_in_weights("\"b\": {\"path_name\": \"weight_0\"",
                       "\"b\": {\"path_name\": \"model_weights_config.json\""),
      "config.b.path_name is 'model_weights_config.json', which does not begin with 'weight_'");
}

}  // namespace
}  // namespace decent::pt2
