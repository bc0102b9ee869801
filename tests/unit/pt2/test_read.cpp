#include "decent/pt2/archive/read.h"

#include "archive_files.h"

namespace decent::pt2 {
namespace {

using testing::archive_bytes;
using testing::ArchiveFiles;
using testing::changed_program;
using ::testing::ElementsAre;
using testing::fixture;
using ::testing::Pair;
using testing::small_records;

class Reading : public ArchiveFiles {};

TEST_F(Reading, ProgramIsThatOfTheFile) {
  const Archive archive = read(small_records());
  ASSERT_EQ(archive.programs.size(), 1u);
  const ExportedProgram& program = archive.programs[0];
  EXPECT_EQ(program.name, "model");
  EXPECT_EQ(archive.find("model"), &program);
  EXPECT_EQ(archive.find("train"), nullptr);
  EXPECT_EQ(program.torch_version, "2.11.0");
  EXPECT_EQ(program.schema_version.minor, 17);
  EXPECT_THAT(program.verifiers, ElementsAre("TRAINING"));
  EXPECT_THAT(program.forward_arg_names, ElementsAre("x"));
  EXPECT_THAT(program.opset_version, ElementsAre(Pair("aten", 10)));
  EXPECT_EQ(program.range_constraints.at("s0").min_value, 0);
  EXPECT_EQ(program.range_constraints.at("s0").max_value, std::nullopt);
  EXPECT_EQ(program.in_spec.leaves(), 1u);
  EXPECT_EQ(program.out_spec.kind, TreeSpec::Kind::leaf);
}

TEST_F(Reading, GraphIsThatOfTheFile) {
  const Archive archive = read(small_records());
  const Graph& graph = archive.programs[0].graph;
  ASSERT_EQ(graph.nodes.size(), 2u);
  const Node& node = graph.nodes[0];
  EXPECT_EQ(node.target, "torch.ops.aten.linear.default");
  EXPECT_EQ(node.metadata.at("torch_fn"), "f");
  EXPECT_EQ(std::get<TensorArgument>(*node.find("bias")).name, "b_b");
  EXPECT_EQ(node.find("other"), nullptr);
  EXPECT_EQ(node.inputs[1].kind, NamedArgument::Kind::positional);
  EXPECT_EQ(node.inputs[2].kind, NamedArgument::Kind::keyword);
  EXPECT_EQ(graph.nodes[1].place, 1u);
  const TensorMeta& x = graph.tensor_values.at("x");
  EXPECT_EQ(x.dtype, ScalarType::float32);
  EXPECT_EQ(symbol_of(x.sizes[0]), "s0");
  EXPECT_EQ(x.sizes[0].hint, 4);
  EXPECT_EQ(symbol_of(x.sizes[1]), std::nullopt);
  EXPECT_EQ(x.sizes[1].value, 3);
}

TEST_F(Reading, SignatureTellsWhatInputsAre) {
  const Archive archive = read(small_records());
  const auto& specs = archive.programs[0].input_specs;
  EXPECT_EQ(std::get<ParameterInput>(specs[0]).parameter_name, "w");
  EXPECT_EQ(std::get<BufferInput>(specs[1]).buffer_name, "b");
  EXPECT_EQ(std::get<TensorConstantInput>(specs[2]).tensor_constant_name, "c");
  EXPECT_EQ(std::get<TensorArgument>(std::get<UserInput>(specs[3]).arg).name, "x");
}

TEST_F(Reading, PayloadsStayInTheFile) {
  const Archive archive = read(small_records());
  const ExportedProgram& program = archive.programs[0];
  const Payload& w = program.weights.at("w");
  const Payload& b = program.weights.at("b");
  EXPECT_EQ(w.record, "data/weights/weight_0");
  EXPECT_EQ(w.storage.data(), archive.file->bytes().data() + w.offset);
  EXPECT_EQ(w.storage.size(), 32u);
  EXPECT_EQ(get("m.pt2").substr(w.offset, 32), std::string(32, '\1'));
  EXPECT_THAT(w.sizes, ElementsAre(2, 3));
  EXPECT_EQ(b.storage_offset, 6);
  EXPECT_FALSE(w.is_same_view(b));
  EXPECT_TRUE(w.is_same_view(w));
  EXPECT_EQ(program.constants.at("c").count(), 1);
}

TEST_F(Reading, RecordsOutsideOfTheFolderAreNotLookedAt) {
  auto parts = testing::zip_parts(small_records());
  parts.push_back({.name = "other/models/more.json", .content = "{"});
  EXPECT_EQ(read(decent::testing::zip_bytes(parts)).programs.size(), 1u);
  EXPECT_EQ(read(decent::testing::zip_bytes(parts, true)).programs.size(), 1u);  // 64-bit sizes
}

TEST(Payload, OrderOfElementsIsThatOfTheStrides) {
  const auto is_contiguous = [](std::vector<std::int64_t> sizes,
                                std::vector<std::int64_t> strides) {
    Payload payload;
    payload.sizes = std::move(sizes);
    payload.strides = std::move(strides);
    return payload.is_contiguous();
  };
  EXPECT_TRUE(is_contiguous({}, {}));
  EXPECT_TRUE(is_contiguous({2, 3}, {3, 1}));
  EXPECT_TRUE(is_contiguous({2, 1, 3}, {3, 7, 1}));
  EXPECT_TRUE(is_contiguous({2, 0}, {9, 9}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));
  EXPECT_FALSE(is_contiguous({2, 3}, {4, 1}));
  EXPECT_FALSE(is_contiguous({2}, {0}));
}

TEST(SymInt, SymbolIsAnExpressionOfOneSymbol) {
  const auto symbol = [](const char* expression) {
    return symbol_of({.value = {}, .expression = expression, .hint = {}});
  };
  EXPECT_EQ(symbol("Symbol('s77', positive=True, integer=True)"), "s77");
  EXPECT_EQ(symbol("s77"), "s77");
  EXPECT_EQ(symbol("Mul(Integer(2), Symbol('s77', integer=True))"), std::nullopt);
  EXPECT_EQ(symbol("Symbol('s1') + Symbol('s2')"), std::nullopt);
  EXPECT_EQ(symbol("Symbol('s1"), std::nullopt);
  EXPECT_EQ(symbol("2*s1"), std::nullopt);
  EXPECT_EQ(symbol(""), std::nullopt);
}

// ---- files of PyTorch itself ----

class Fixtures : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Versions, Fixtures, ::testing::Values("2_11", "2_15"));

TEST_P(Fixtures, ArgumentsOfManyKindsAreRead) {
  const Archive archive = read_archive(fixture(std::string("assorted_") + GetParam() + ".pt2"));
  ASSERT_EQ(archive.programs.size(), 1u);
  const ExportedProgram& program = archive.programs[0];
  EXPECT_TRUE(program.torch_version.starts_with(std::string(GetParam()).replace(1, 1, ".")));
  EXPECT_THAT(program.verifiers, ElementsAre("TRAINING"));
  EXPECT_TRUE(program.weights.at("embed.weight").is_same_view(program.weights.at("head.weight")));
  const Payload& rows = program.weights.at("rows");
  EXPECT_EQ(rows.record, program.weights.at("embed.weight").record);
  EXPECT_THAT(rows.strides, ElementsAre(1, 4));
  EXPECT_EQ(rows.storage_offset, 8);
  EXPECT_TRUE(program.constants.contains("scale"));

  bool has_cond = false;
  for (const Node& node : program.graph.nodes) {
    if (node.target != "torch.ops.higher_order.cond") continue;
    has_cond = true;
    const auto& branch = std::get<GraphArgument>(node.inputs[1].value);
    EXPECT_EQ(branch.graph->nodes.at(0).target, "torch.ops.aten.linear.default");
  }
  EXPECT_TRUE(has_cond);
}

TEST_P(Fixtures, NestedArgumentsAndResultsAreLaidOut) {
  const Archive archive = read_archive(fixture(std::string("assorted_") + GetParam() + ".pt2"));
  const TreeSpec& in = archive.programs[0].in_spec;
  ASSERT_EQ(in.children.size(), 2u);  // args, kwargs
  EXPECT_THAT(in.children[0].children[1].keys, ElementsAre(TreeKey("bias"), TreeKey("unused")));
  EXPECT_THAT(in.children[1].keys, ElementsAre(TreeKey("times"), TreeKey("mask")));
  const TreeSpec& out = archive.programs[0].out_spec;
  EXPECT_THAT(out.keys,
              ElementsAre(TreeKey("logits"), TreeKey("pair"), TreeKey("rest"), TreeKey("bound")));
  EXPECT_EQ(out.children[1].kind, TreeSpec::Kind::fields);
  EXPECT_EQ(out.children[1].context, "fixtures.Pair");
  EXPECT_THAT(out.children[1].keys, ElementsAre(TreeKey("first"), TreeKey("second")));
}

TEST_P(Fixtures, PackageHoldsSeveralPrograms) {
  const Archive archive = read_archive(fixture(std::string("package_") + GetParam() + ".pt2"));
  ASSERT_EQ(archive.programs.size(), 2u);
  const ExportedProgram* train = archive.find("train");
  const ExportedProgram* eval = archive.find("eval");
  ASSERT_TRUE(train != nullptr && eval != nullptr);
  EXPECT_TRUE(std::get<bool>(*train->graph.nodes.at(1).find("train")));
  EXPECT_FALSE(std::get<bool>(*eval->graph.nodes.at(1).find("train")));
  EXPECT_NE(train->weights.at("linear.weight").offset, eval->weights.at("linear.weight").offset);
}

}  // namespace
}  // namespace decent::pt2
