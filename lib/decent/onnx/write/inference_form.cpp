#include "decent/onnx/write/inference_form.h"

#include <map>
#include <string_view>

#include "decent/core/quote.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/format/wire_write.h"
#include "decent/onnx/write/constant_masks.h"

namespace decent::onnx {
namespace {

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
