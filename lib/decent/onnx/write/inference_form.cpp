#include "decent/onnx/write/inference_form.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "decent/core/text.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/format/wire.h"

namespace decent::onnx {
namespace {

// Advice for a model without a form for inference.
constexpr const char* kWrittenAsItIs = "model.export_mode: train writes it as it is";

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

// Edits that replace each mask of random numbers by ones of the same shape and type. Throws
// UserError if a mask has nodes in several functions of the model.
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

constexpr std::uint64_t kInt = 2;  // AttributeProto.AttributeType

bool is_batch_norm(const Node& node) {
  return node.domain.empty() && node.op_type == "BatchNormalization";
}

// Changes the attribute's own value in place; a value that a function's caller gives becomes a
// fixed one.
void turn_off(Input& file, const Attribute& attribute, std::vector<Edit>& edits) {
  std::string bytes;
  if (!attribute.ref_attr_name.empty()) {
    std::string content;
    append_bytes(content, 1, attribute.name);
    append_number(content, 3, 0);
    append_number(content, 20, kInt);
    append_bytes(bytes, 5, content);
    edits.push_back({.field = attribute.field, .begin = bytes});
    return;
  }
  const auto* value = std::get_if<std::int64_t>(&attribute.value);
  if (value == nullptr || *value == 0) return;
  const Message outer(file, attribute.field, "NodeProto");
  Fields around(outer);
  const Message message = outer.open(*around.next(), "AttributeProto");
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number != 3) continue;
    append_number(bytes, 3, 0);
    edits.push_back({.field = field->range, .begin = bytes});
  }
}

void edit_node(Input& file, const Node& node, std::vector<Edit>& edits) {
  if (is_batch_norm(node)) {
    if (const Attribute* mode = node.find("training_mode")) turn_off(file, *mode, edits);
    for (std::size_t i = 1; i < node.outputs.size(); ++i) {
      edits.push_back({.field = node.output_fields[i]});
    }
  } else if (node.domain.empty() && node.op_type == "Dropout" && node.inputs.size() > 2 &&
             !node.inputs[2].empty()) {
    edits.push_back({.field = node.input_fields[2]});
  }
}

// Looks for uses of the removed outputs. Names are unique among the values that are visible at
// once, so one map suffices for all nested graphs.
class UseChecker {
 public:
  explicit UseChecker(const Input& file) : file_(file) {}

  void check(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      for (const std::string& input : node.inputs) refuse(input, name_in_messages(node));
      for (const Attribute& attribute : node.attributes) {
        if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
          check(**graph);
        }
      }
      if (is_batch_norm(node)) remove_outputs(node);
    }
  }

  void check(const Graph& graph) {
    const std::size_t outer = order_.size();
    check(graph.nodes);
    for (const ValueInfo& output : graph.outputs) refuse(output.name, "an output of the graph");
    for (std::size_t i = outer; i < order_.size(); ++i) gone_.erase(order_[i]);
    order_.resize(outer);
  }

  void check(const Function& function) {
    check(function.nodes);
    const std::string user = "an output of function " + in_quotes(function.name);
    for (const std::string& output : function.outputs) refuse(output, user);
  }

 private:
  void remove_outputs(const Node& node) {
    for (std::size_t i = 1; i < node.outputs.size(); ++i) {
      gone_.emplace(node.outputs[i], &node);
      order_.emplace_back(node.outputs[i]);
    }
  }

  void refuse(const std::string& name, const std::string& user) const {
    const auto found = gone_.find(name);
    if (found == gone_.end() || name.empty()) return;
    file_.fail(name_in_messages(*found->second) + " makes " + in_quotes(name) +
               " in training only, and " + user +
               " uses it: the model has no form for inference; " + kWrittenAsItIs);
  }

  const Input& file_;
  std::map<std::string_view, const Node*> gone_;
  std::vector<std::string_view> order_;
};

}  // namespace

std::vector<Edit> inference_form(Input& file, const Model& model,
                                 std::span<const RandomMask> masks) {
  UseChecker(file).check(model.graph);
  for (const Function& function : model.functions) UseChecker(file).check(function);
  std::vector<Edit> edits;
  for_each_node(model, [&](const Node& node) { edit_node(file, node, edits); });
  add_constant_masks(file, model, masks, edits);
  sort_edits(edits);  // a node's attributes may come before its outputs
  return edits;
}

}  // namespace decent::onnx
