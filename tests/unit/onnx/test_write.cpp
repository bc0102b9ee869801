// Models written back with new elements, byte by byte.

#include "decent/onnx/write/write.h"

#include "decent/onnx/graph/hoist_constants.h"
#include "decent/onnx/graph/inline_functions.h"
#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WriteModel : public ModelFiles {
 public:
  // Writes the model with `elements` in the initializer of that index.
  std::string written(const Model& model, std::string_view elements, std::size_t index = 0) {
    Changes changes;
    changes.elements.push_back({&model.graph.initializers.at(index), to_bytes(elements)});
    write_model(model, changes, folder / "out.onnx");
    return get("out.onnx");
  }
};

std::string with_tensor(int type, std::initializer_list<std::int64_t> dims, std::string_view data) {
  return model_bytes(relu(initializer(tensor("a", 1, {}, bytes(9, raw({9.F}))) + bytes(12, "doc")) +
                          initializer(tensor("w", type, dims, data)) + bytes(31, "later")),
                     17, bytes(14, entry("k", "v")));
}

struct Field {
  std::string name;
  int type = 0;
  std::string before;
  std::string after;
  std::string elements;  // new ones
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

// A double, one by one.
std::string real64(int field, double value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 1) + raw({value});
}

const Field kFields[] = {
    {"raw", 1, bytes(9, raw({1.F, 2.F})), bytes(9, raw({3.F, 4.F})), raw({3.F, 4.F})},
    {"raw_long_length", 1, varint(9 << 3 | 2) + std::string("\x88\x00", 2) + raw({1.F, 2.F}),
     varint(9 << 3 | 2) + std::string("\x88\x00", 2) + raw({3.F, 4.F}), raw({3.F, 4.F})},
    {"float_data", 1, bytes(4, raw({1.F, 2.F})), bytes(4, raw({3.F, 4.F})), raw({3.F, 4.F})},
    {"float_data_one_by_one", 1, real(4, 1) + real(4, 2), real(4, 3) + real(4, 4), raw({3.F, 4.F})},
    {"float_data_in_pieces", 1, bytes(4, raw({1.F})) + bytes(4, "") + real(4, 2),
     bytes(4, raw({3.F})) + bytes(4, "") + real(4, 4), raw({3.F, 4.F})},
    {"double_data", 11, bytes(10, raw({1., 2.})), bytes(10, raw({3., 4.})), raw({3., 4.})},
    {"double_data_one_by_one", 11, real64(10, 1) + real64(10, 2), real64(10, 3) + real64(10, 4),
     raw({3., 4.})},
    {"float16", 10, packed(5, {0x3C00, 0}), packed(5, {0, 0xC000}),
     raw<std::uint16_t>({0, 0xC000})},
    {"bfloat16_one_by_one", 16, number(5, 0x3F80) + number(5, 0), number(5, 0) + number(5, 0xBF80),
     raw<std::uint16_t>({0, 0xBF80})},
    {"int32", 6, packed(5, {1, 2}), packed(5, {-1, 300}), raw<std::int32_t>({-1, 300})},
    {"int16", 5, packed(5, {1, 2}), packed(5, {-1, 300}), raw<std::int16_t>({-1, 300})},
    {"int8", 3, packed(5, {1, 2}), packed(5, {-1, 100}), raw<std::int8_t>({-1, 100})},
    {"uint8", 2, packed(5, {1, 2}), packed(5, {255, 0}), raw<std::uint8_t>({255, 0})},
    {"uint16", 4, packed(5, {1, 2}), packed(5, {65535, 0}), raw<std::uint16_t>({65535, 0})},
    {"boolean", 9, packed(5, {1, 0}), packed(5, {0, 1}), raw<std::uint8_t>({0, 1})},
    {"int64", 7, packed(7, {1, 2}), packed(7, {-1, 1LL << 50}), raw<std::int64_t>({-1, 1LL << 50})},
    {"uint32", 12, packed(11, {1, 2}), packed(11, {0xFFFFFFFF, 0}), raw<std::uint32_t>({~0U, 0})},
    {"uint64", 13, packed(11, {1, 2}), packed(11, {-1, 0}), raw<std::uint64_t>({~0ULL, 0})},
};

class WriteField : public WriteModel, public ::testing::WithParamInterface<Field> {};

TEST_P(WriteField, StaysTheFieldThatItIs) {
  const auto& [name, type, before, after, elements] = GetParam();
  const std::string original = with_tensor(type, {2}, before);
  const std::string expected = with_tensor(type, {2}, after);
  EXPECT_EQ(written(read(original), elements, 1), expected);
  const Model again = read(expected);
  EXPECT_EQ(as<char>(again.graph.initializers[1].elements()), as<char>(to_bytes(elements)));
  const std::span<const std::byte> same = again.graph.initializers[1].elements();
  const std::string same_text(reinterpret_cast<const char*>(same.data()), same.size());
  EXPECT_EQ(written(again, same_text, 1), expected) << "equal elements are no change";
}

INSTANTIATE_TEST_SUITE_P(All, WriteField, ::testing::ValuesIn(kFields),
                         [](const auto& field) { return field.param.name; });

TEST_F(WriteModel, PutsElementsIntoTheListOfFloatsOfAConstantNode) {
  const auto file = [](const std::string& floats) {
    const std::string attribute = bytes(5, bytes(1, "value_floats") + floats + number(20, 6));
    return model_bytes(node_field(node("Constant", {}, {"b"}, attribute)) +
                       node_field(node("Add", {"x", "b"}, {"y"})) + input("x") + output("y"));
  };
  for (const bool is_packed : {true, false}) {
    const auto list = [&](float a, float b) {
      return is_packed ? bytes(7, raw({a, b})) : real(7, a) + real(7, b);
    };
    const Model model = read(file(list(1, 2)));
    Model hoisted = inline_functions(model);
    hoist_constants(hoisted);
    ASSERT_EQ(hoisted.graph.initializers.size(), 1U);
    Changes changes;
    changes.elements.push_back({&hoisted.graph.initializers.front(), to_bytes(raw({3.F, 4.F}))});
    write_model(model, changes, folder / "out.onnx");
    EXPECT_EQ(get("out.onnx"), file(list(3, 4)));
  }
}

TEST_F(WriteModel, MetadataComesInPlaceOfThatOfItsKey) {
  const auto file = [](const std::string& before, const std::string& behind) {
    return model_bytes(relu(), 17, before) + behind;
  };
  const std::string other = bytes(14, entry("a", "b"));
  const auto with = [&](const std::string& original, const char* value) {
    Changes changes;
    changes.metadata["k"] = value;
    write_model(read(original), changes, folder / "out.onnx");
    return get("out.onnx");
  };
  const std::string first = with(file(other, ""), "v");
  EXPECT_EQ(first, file(other, bytes(14, entry("k", "v"))));
  EXPECT_EQ(with(first, "v"), first) << "the same value is no change";
  EXPECT_EQ(with(first, "longer"), file(other, bytes(14, entry("k", "longer"))));
  const std::string twice = file(bytes(14, entry("k", "1")) + other, bytes(14, entry("k", "2")));
  EXPECT_EQ(with(twice, "v"), first);
}

TEST_F(WriteModel, EqualElementsKeepAnEncodingOfTheirOwn) {
  // A negative int32 in 32 bits, as protobuf does not write it.
  const std::string original = with_tensor(6, {1}, varint(5 << 3) + varint(0xFFFFFFFF));
  EXPECT_EQ(written(read(original), raw<std::int32_t>({-1}), 1), original);
}

TEST_F(WriteModel, LengthsAroundALongerFieldGrow) {
  std::string before;
  std::string after;
  std::string elements;
  for (int i = 0; i < 60; ++i) {
    before += number(7, 1);
    after += number(7, 1'000'000 + i);
    elements += raw<std::int64_t>({1'000'000 + i});
  }
  EXPECT_EQ(written(read(with_tensor(7, {60}, before)), elements, 1), with_tensor(7, {60}, after));
  EXPECT_EQ(written(
                read(with_tensor(7, {60}, after)),
                [] {
                  std::string ones;
                  for (int i = 0; i < 60; ++i) ones += raw<std::int64_t>({1});
                  return ones;
                }(),
                1),
            with_tensor(7, {60}, before));
}

TEST_F(WriteModel, InitializersOfGraphsInside) {
  const auto model = [](float value) {
    const std::string inner = output("z") + node_field(node("Add", {"x", "w"}, {"z"})) +
                              initializer(tensor("w", 1, {}, bytes(9, raw({value}))));
    return model_bytes(input("x") + output("y") +
                       node_field(node("If", {"x"}, {"y"}, graph_attribute("then_branch", inner))));
  };
  const Model original = read(model(1));
  const auto& graph = std::get<std::shared_ptr<Graph>>(original.graph.nodes[0].attributes[0].value);
  Changes changes;
  changes.elements.push_back({&graph->initializers.at(0), to_bytes(raw({2.F}))});
  write_model(original, changes, folder / "out.onnx");
  EXPECT_EQ(get("out.onnx"), model(2));
}

TEST_F(WriteModel, SeveralChangesAtOnce) {
  const auto model = [](float a, float b, Names outputs) {
    return model_bytes(input("x") + initializer(tensor("a", 1, {}, bytes(9, raw({a})))) +
                       output("y") +
                       node_field(node("BatchNormalization", {"x", "a", "a", "b", "b"}, outputs)) +
                       initializer(tensor("b", 1, {}, real(4, b))));
  };
  const Model original = read(model(1, 2, {"y", "m", "v"}));
  Changes changes;  // in another order than the file's
  changes.elements.push_back({&original.graph.initializers[1], to_bytes(raw({20.F}))});
  changes.elements.push_back({&original.graph.initializers[0], to_bytes(raw({10.F}))});
  write_model(original, changes, folder / "out.onnx");
  EXPECT_EQ(get("out.onnx"), model(10, 20, {"y"}));
}

// Two nodes that hand on one initializer; the second has a value of its own.
class OwnInitializers : public WriteModel {
 public:
  static std::string model(int ir_version, const std::string& second) {
    return model_bytes(input("x") + (ir_version < 4 ? input("w") : "") + output("y") +
                           initializer(tensor("w", 1, {2}, bytes(9, raw({1.F, 2.F})))) +
                           node_field(node("Identity", {"w"}, {"a"})) + second +
                           node_field(node("Sum", {"x", "a", "b"}, {"y"})),
                       17, "", ir_version);
  }
  std::string written_with_own(int ir_version) {
    const Model original = read(model(ir_version, node_field(node("Identity", {"w"}, {"b"}))));
    Tensor own = original.graph.initializers[0];
    own.name = "b";
    own.decoded = std::make_shared<std::vector<std::byte>>(to_bytes(raw({3.F, 4.F})));
    Changes changes;
    changes.own.push_back({&original.graph.nodes[1], own});
    write_model(original, changes, folder / "out.onnx");
    return get("out.onnx");
  }
};

TEST_F(OwnInitializers, StandInPlaceOfTheNode) {
  const std::string own =
      initializer(number(1, 2) + number(2, 1) + bytes(8, "b") + bytes(9, raw({3.F, 4.F})));
  EXPECT_EQ(written_with_own(8), model(8, own));
  const Model again = read(model(8, own));
  EXPECT_EQ(again.graph.nodes.size(), 2U);
  EXPECT_THAT(as<float>(again.graph.initializers[1].elements()), ElementsAre(3, 4));
}

TEST_F(OwnInitializers, AreInputsBeforeIrVersion4) {
  const std::string type = bytes(1, number(1, 1) + bytes(2, bytes(1, number(1, 2))));
  const std::string own =
      bytes(11, bytes(1, "b") + bytes(2, type)) +
      initializer(number(1, 2) + number(2, 1) + bytes(8, "b") + bytes(9, raw({3.F, 4.F})));
  EXPECT_EQ(written_with_own(3), model(3, own));
  EXPECT_EQ(read(model(3, own)).graph.inputs.size(), 1U);
}

TEST_F(WriteModel, OverItselfIsRefused) {
  const Model model = read(model_bytes(relu()));
  const std::string why = "would be written over the model that it is made from";
  EXPECT_THAT(decent::testing::refusal([&] { write_model(model, {}, folder / "m.onnx"); }),
              HasSubstr(why));
  std::filesystem::create_symlink("m.onnx", folder / "link.onnx");
  EXPECT_THAT(decent::testing::refusal([&] { write_model(model, {}, folder / "link.onnx"); }),
              HasSubstr(why));
  EXPECT_EQ(get("m.onnx"), model_bytes(relu()));
}

TEST_F(WriteModel, AnEarlierExportIsReplacedAndAFailedOneLeavesNothing) {
  const Model model = read(model_bytes(relu()));
  put("out.onnx", "an earlier export");
  write_model(model, {}, folder / "out.onnx");
  EXPECT_EQ(get("out.onnx"), model_bytes(relu()));
  EXPECT_THROW(write_model(model, {}, folder / "none/out.onnx"), WriteError);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
