#include "decent/onnx/translate/graph_translator.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/script_text.h"
#include "decent/core/text.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/graph/uses.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {
namespace {

std::string annotation_of(Value::Kind kind) {
  return kind == Value::Kind::sequence ? "List[Tensor]" : "Tensor";
}

Value::Kind kind_of(const ValueInfo& input) {
  return input.kind == ValueInfo::Kind::sequence ? Value::Kind::sequence : Value::Kind::tensor;
}

// TorchScript runs modules of up to this many nodes; far more exhaust its stack (measured: 20,000
// run, 40,000 do not).
constexpr std::size_t kMaxTranslatedNodes = 20'000;

}  // namespace

Value ForwardMethod::value_of(const ValueInfo& input) const {
  const std::string begin = "model '" + model_.path.string() + "': input '" + input.name + "' ";
  if (input.kind == ValueInfo::Kind::other)
    throw UserError(begin + "is neither a tensor nor a sequence of tensors");
  if (input.shape && input.shape->size() > kMaxDimensions) {
    throw UserError(begin + "has " + std::to_string(input.shape->size()) +
                    " dimensions; PyTorch has at most " + std::to_string(kMaxDimensions));
  }
  Value value;
  value.kind = kind_of(input);
  value.type = module_.as_computed(input.type);
  value.text = module_.fresh_name(input.name);
  if (input.shape && value.kind == Value::Kind::tensor)
    value.rank = static_cast<std::int64_t>(input.shape->size());
  return value;
}

void ForwardMethod::declare_inputs() {
  for (const ValueInfo& input : model_.graph.inputs) {
    Value value = value_of(input);
    arguments_.emplace_back(input.name, value.text);
    // Data may come in another type: bytes for a graph that reads int64.
    const auto dtype = torch_dtype(value.type);
    if (dtype && value.kind == Value::Kind::tensor)
      module_.method().add(value.text + " = " + method(value.text, "to", *dtype).text());
    module_.define(input.name, std::move(value));
  }
}

const Value& ForwardMethod::output_value(const ValueInfo& output) const {
  if (const Value* value = module_.find(output.name)) return *value;
  throw UserError("model '" + model_.path.string() + "': no node makes its output '" + output.name +
                  "'");
}

std::string ForwardMethod::signature() const {
  std::string text = "def forward(self";
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    text += ", " + arguments_[i].second + ": " + annotation_of(kind_of(model_.graph.inputs[i]));
  return text + ") -> " + return_type() + ":";
}

std::string ForwardMethod::return_type() const {
  const std::vector<ValueInfo>& outputs = model_.graph.outputs;
  if (outputs.size() == 1) return annotation_of(output_value(outputs.front()).kind);
  const bool tensors = std::all_of(outputs.begin(), outputs.end(), [&](const ValueInfo& output) {
    return output_value(output).kind == Value::Kind::tensor;
  });
  if (tensors) return "Dict[str, Tensor]";
  Arguments types;
  for (const ValueInfo& output : outputs) types.add(annotation_of(output_value(output).kind));
  return "Tuple[" + types.text() + "]";
}

std::string ForwardMethod::return_line() const {
  const std::vector<ValueInfo>& outputs = model_.graph.outputs;
  if (outputs.size() == 1) return "return " + module_.text_of(output_value(outputs.front()));
  const bool named = return_type().front() == 'D';
  Arguments entries;
  for (const ValueInfo& output : outputs) {
    const std::string key = named ? string_literal(output.name) + ": " : "";
    entries.add(key + module_.text_of(output_value(output)));
  }
  return "return " + (named ? "{" + entries.text() + "}" : "(" + entries.text() + ")");
}

// The device of the first input, if it is a tensor.
std::string ForwardMethod::device() const {
  const std::vector<ValueInfo>& inputs = model_.graph.inputs;
  const bool from_input = !inputs.empty() && inputs.front().kind == ValueInfo::Kind::tensor;
  if (!from_input) return "torch.device(\"cpu\")";
  return attribute(arguments_.front().second, "device").text();
}

std::string ForwardMethod::finish() {
  module_.method().add(return_line());
  return module_.method().text(signature(), device());
}

std::string describe(const Node& node) {
  const std::string& name = node.name.empty() ? node.outputs.front() : node.name;
  return "node '" + name + "' (" + node.op_type + ")";
}

GraphTranslator::GraphTranslator(const Model& model, const Classification& classification,
                                 const TranslationOptions& options)
    : model_(model),
      classification_(classification),
      options_(options),
      module_(model, classification, options),
      forward_(model, module_),
      folder_(module_, options.evaluate) {}

void GraphTranslator::note(const std::string& text) {
  if (!folder_.is_folding()) result_.notes.push_back(text);
}

void GraphTranslator::give_up_on_outputs(const Node& node) {
  given_up_.insert(node.outputs.begin(), node.outputs.end());
}

void GraphTranslator::translate_nodes(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    translate_node(node);
    if (&graph == &model_.graph) give_logits_after(node);
  }
}

// If logits are asked for, forward returns here, and the nodes after them are not computed.
void GraphTranslator::give_logits_after(const Node& node) {
  const std::string& logits = options_.logits;
  const auto made = std::find(node.outputs.begin(), node.outputs.end(), logits);
  if (logits.empty() || made == node.outputs.end()) return;
  const Value* value = module_.find(logits);
  if (value == nullptr || value->kind != Value::Kind::tensor) return;
  const std::vector<ValueInfo>& outputs = model_.graph.outputs;
  const bool are_tensors = std::all_of(outputs.begin(), outputs.end(), [](const auto& output) {
    return output.kind == ValueInfo::Kind::tensor;
  });
  if (!are_tensors) return;
  const std::string text = module_.text_of(*value);
  module_.method().open("if self." + std::string(kGivesLogits) + ":");
  const std::string entry = string_literal(*options_.output) + ": " + text;
  module_.method().add("return " + (outputs.size() == 1 ? text : "{" + entry + "}"));
  module_.method().close();
  module_.source().may_give_logits = true;
}

bool GraphTranslator::reads_integer_matrix(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
    const Value* value = module_.find(name);
    return value != nullptr && value->constant && !is_floating(value->type) &&
           value->constant->dims.size() >= 2;
  });
}

void GraphTranslator::translate_node(const Node& node) {
  ++result_.nodes;
  const bool blocked = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](const auto& name) { return given_up_.count(name) != 0; });
  const std::int64_t opset = node.opset != 0 ? node.opset : model_.opset();
  const Operator* known = node.domain.empty()             ? find_operator(node.op_type, opset)
                          : node.domain == kPatternDomain ? find_pattern_operator(node.op_type)
                                                          : nullptr;
  if (known == nullptr) obstacles_.operators.add(node, reads_integer_matrix(node));
  if (known == nullptr || blocked) return give_up_on_outputs(node);
  try {
    translate_known(node, *known);
  } catch (const Unsupported& error) {
    obstacles_.nodes.push_back(describe(node) + " " + error.what());
    give_up_on_outputs(node);
  }
}

void GraphTranslator::translate_known(const Node& node, const Operator& known) {
  if (node.outputs.empty()) return;  // nothing can read its result
  if (give_own_parameter(node)) return;
  NodeContext context(*this, node);
  if (folder_.can_fold(node, known)) {
    folder_.fold(context, known);
    ++result_.folded_nodes;
    return check_outputs(node);
  }
  known.translate(context);
  check_outputs(node);
  if (!folder_.is_folding()) {
    ++result_.operators[node.op_type];
    record_step(node, known);
  }
}

// A file can name more outputs than an operator has, or than a graph inside it returns.
void GraphTranslator::check_outputs(const Node& node) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (!name.empty() && module_.find_here(name) == nullptr && module_.is_read(name))
      throw Unsupported("does not make its output " + std::to_string(i) + ", '" + name + "'");
  }
}

bool GraphTranslator::give_own_parameter(const Node& node) {
  const auto found = classification_.own.find(&node);
  if (found == classification_.own.end()) return false;
  module_.define(node.outputs.front(), module_.value_of(*found->second.tensor, found->second));
  return true;
}

// Outputs that have no gradient (Dropout's mask, MaxPool's indices) are a step of their own, so
// that they do not cut off the others.
void GraphTranslator::record_step(const Node& node, const Operator& known) {
  GradientStep flowing{
      describe(node), node.op_type, names_read(node), {}, known.gradient == Gradient::flows};
  GradientStep cut = flowing;
  cut.flows = false;
  const bool reaches =
      std::any_of(flowing.inputs.begin(), flowing.inputs.end(), [&](const auto& name) {
        const Value* value = module_.find(name);
        return value != nullptr && value->has_gradient;
      });
  for (const std::string& name : node.outputs) {
    Value* value = name.empty() ? nullptr : module_.find_here(name);
    if (value == nullptr) continue;
    const bool floats = is_floating(value->type);
    (floats ? flowing : cut).outputs.push_back(name);
    // Values after a stop stay reachable on purpose, so that the search can name the stop.
    value->has_gradient = reaches && flowing.flows && floats;
  }
  result_.steps.push_back(std::move(flowing));
  if (!cut.outputs.empty()) result_.steps.push_back(std::move(cut));
}

std::vector<Value> GraphTranslator::translate_graph(const Graph& graph, std::vector<Value> inputs) {
  const auto scope = module_.enter_scope();
  module_.add_initializers(graph);
  for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) {
    module_.define(graph.inputs[i].name, std::move(inputs[i]));
  }
  translate_nodes(graph);
  std::vector<Value> outputs;
  for (const ValueInfo& output : graph.outputs) {
    const Value* value = module_.find(output.name);
    if (value == nullptr) throw Unsupported("holds nodes that cannot be imported");
    outputs.push_back(*value);
  }
  return outputs;
}

// If the output that is used is possible, others need not be.
void GraphTranslator::find_impossible_outputs() {
  const std::string why = obstacles_.in_brief();
  for (const ValueInfo& output : model_.graph.outputs)
    if (module_.find(output.name) == nullptr) result_.impossible.emplace_back(output.name, why);
}

void GraphTranslator::refuse() const {
  OutputsInDoubt outputs;
  for (const ValueInfo& output : model_.graph.outputs) {
    const Value* value = module_.find(output.name);
    const bool is_wanted = !options_.output || output.name == *options_.output;
    if (value == nullptr && is_wanted) outputs.impossible.push_back(output.name);
    if (value != nullptr && value->has_gradient) outputs.possible.push_back(output.name);
  }
  throw UserError(refusal_text(model_, classification_, obstacles_, outputs));
}

Translation GraphTranslator::run() {
  module_.add_initializers(model_.graph);
  forward_.declare_inputs();
  result_.arguments = forward_.arguments();
  translate_nodes(model_.graph);
  if (!obstacles_.empty()) {
    find_impossible_outputs();
    const bool are_wanted =
        options_.output ? module_.find(*options_.output) == nullptr : !result_.impossible.empty();
    if (are_wanted) refuse();
    if (!result_.impossible.empty()) return std::move(result_);
  }
  if (result_.nodes - result_.folded_nodes > kMaxTranslatedNodes) {
    throw UserError("model '" + model_.path.string() + "' has " +
                    std::to_string(result_.nodes - result_.folded_nodes) +
                    " nodes; TorchScript runs up to " + std::to_string(kMaxTranslatedNodes));
  }
  for (const ValueInfo& output : model_.graph.outputs) result_.outputs.push_back(output.name);
  module_.source().methods = forward_.finish();
  result_.module = std::move(module_.source());
  return std::move(result_);
}

Translation translate(const Model& model, const Classification& classification,
                      const TranslationOptions& options) {
  return GraphTranslator(model, classification, options).run();
}

}  // namespace decent::onnx
