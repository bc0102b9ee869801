#include "decent/onnx/write/constant_masks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/format/wire_write.h"

namespace decent::onnx {
namespace {

// Fields of NodeProto, AttributeProto and TensorProto in onnx.proto.
constexpr std::uint32_t kInput = 1;
constexpr std::uint32_t kOutput = 2;
constexpr std::uint32_t kName = 3;
constexpr std::uint32_t kOpType = 4;
constexpr std::uint32_t kAttribute = 5;

std::string node_content(const std::string& op_type, const std::vector<std::string>& inputs,
                         const std::string& output) {
  std::string node;
  for (const std::string& input : inputs) append_bytes(node, kInput, input);
  append_bytes(node, kOutput, output);
  append_bytes(node, kName, output);
  append_bytes(node, kOpType, op_type);
  return node;
}

// "value" of ConstantOfShape: a float32 of 1.
std::string value_of_one() {
  constexpr std::string_view kOneInFloat32("\x00\x00\x80\x3f", 4);
  constexpr std::uint64_t kFloat32 = 1;
  constexpr std::uint64_t kTensor = 4;  // AttributeProto.AttributeType
  std::string tensor;
  append_number(tensor, 1, 1);  // dims
  append_number(tensor, 2, kFloat32);
  append_bytes(tensor, 9, kOneInFloat32);
  std::string attribute;
  append_bytes(attribute, 1, "value");
  append_bytes(attribute, 5, tensor);
  append_number(attribute, 20, kTensor);
  std::string field;
  append_bytes(field, kAttribute, attribute);
  return field;
}

std::string_view text_at(const Input& file, ByteRange range) {
  const auto bytes = file.bytes.subspan(range.begin, range.size());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ConstantMask {
 public:
  /// Throws UserError if the nodes of `mask` are not all in the list.
  ConstantMask(Input& file, const std::vector<Node>& nodes, const RandomMask& mask)
      : file_(file),
        division_(node_at(nodes, mask.division)),
        cast_(node_at(nodes, mask.cast)),
        random_(node_at(nodes, mask.random)) {
    for (const ByteRange& each : mask.others) node_at(nodes, each);
  }

  /// The nodes that replace the division; they read the shape of the mask.
  std::string nodes() const {
    const std::string& mask = division_.outputs.front();
    const std::string shape = mask + "/shape";
    const std::string ones = mask + "/ones";
    std::vector<std::string> cast_inputs(cast_.inputs.begin(), cast_.inputs.end());
    cast_inputs.front() = ones;
    std::string cast = node_content(cast_.op_type, cast_inputs, mask);
    for (const Attribute& each : cast_.attributes) cast += text_at(file_, each.field);
    std::string bytes;
    const std::uint32_t number = field_number();
    append_bytes(bytes, number, node_content("Shape", {random_.inputs.front()}, shape));
    append_bytes(bytes, number, node_content("ConstantOfShape", {shape}, ones) + value_of_one());
    append_bytes(bytes, number, cast);
    return bytes;
  }

 private:
  const Node& node_at(const std::vector<Node>& nodes, ByteRange place) const {
    const auto lies_there = [&](const Node& node) { return node.field.begin == place.begin; };
    const auto found = std::find_if(nodes.begin(), nodes.end(), lies_there);
    if (found != nodes.end()) return *found;
    file_.fail(
        "a dropout or stochastic depth that is written as random numbers has nodes in several "
        "functions: the model has no form for inference; " +
        std::string(kWrittenAsItIs));
  }

  // A graph and a function have their nodes in different fields.
  std::uint32_t field_number() const {
    const Message message(file_, division_.field, "NodeProto");
    Fields fields(message);
    return fields.next()->number;
  }

  Input& file_;
  const Node& division_;
  const Node& cast_;
  const Node& random_;
};

}  // namespace

void add_constant_masks(Input& file, const Model& model, std::span<const RandomMask> masks,
                        std::vector<Edit>& edits) {
  if (masks.empty()) return;
  std::map<std::uint64_t, const std::vector<Node>*> list_of;  // by the place of a node in the file
  for_each_node_list(model, [&](const std::vector<Node>& nodes) {
    for (const Node& node : nodes) list_of.emplace(node.field.begin, &nodes);
  });
  std::set<std::uint64_t> done;  // a function may be called several times
  for (const RandomMask& mask : masks) {
    if (!done.insert(mask.division.begin).second) continue;
    const ConstantMask constant(file, *list_of.at(mask.division.begin), mask);
    edits.push_back({.field = mask.division, .begin = constant.nodes()});
    for (const ByteRange& each : {mask.cast, mask.random}) edits.push_back({.field = each});
    for (const ByteRange& each : mask.others) edits.push_back({.field = each});
  }
}

}  // namespace decent::onnx
