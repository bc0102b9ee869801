#include "decent/onnx/translate/graph_translator.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/graph/inner_scope.h"
#include "decent/onnx/graph/uses.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

// Up to so many nodes TorchScript runs a module; far more exhaust its stack (measured: 20,000 run,
// 40,000 do not).
constexpr std::size_t kMostTranslatedNodes = 20'000;

std::string annotation_of(Value::Kind kind) {
  return kind == Value::Kind::sequence ? "List[Tensor]" : "Tensor";
}

}  // namespace

std::string describe(const Node& node) {
  const std::string& name = node.name.empty() ? node.outputs.front() : node.name;
  return "node '" + name + "' (" + node.op_type + ")";
}

GraphTranslator::GraphTranslator(const Model& model, const Classification& classification,
                                 const TranslationOptions& options)
    : model_(model), classification_(classification), options_(options) {
  scopes_.emplace_back();
}

const Value* GraphTranslator::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found != scope->end()) return &found->second;
  }
  return nullptr;
}

const Value& GraphTranslator::output_value(const ValueInfo& output) const {
  if (const Value* value = find(output.name)) return *value;
  throw UserError("model '" + model_.path.string() + "': no node makes its output '" + output.name +
                  "'");
}

// What nodes compute of ranks passes here: a difference of two may be below 0, a sum beyond all
// that a tensor can have.
void GraphTranslator::define(const std::string& name, Value value) {
  if (value.rank && (*value.rank < 0 || *value.rank > kMostDimensions)) {
    throw Unsupported("makes a tensor of " + std::to_string(*value.rank) +
                      " dimensions; PyTorch has 0 to " + std::to_string(kMostDimensions));
  }
  scopes_.back().insert_or_assign(name, std::move(value));
}

bool GraphTranslator::is_read(std::string_view name) {
  if (read_names_.empty()) {
    const auto add_outputs = [&](const Graph& graph) {
      for (const ValueInfo& output : graph.outputs) read_names_.insert(output.name);
    };
    add_outputs(model_.graph);
    for_each_node(model_.graph.nodes, [&](const Node& node) {
      read_names_.insert(node.inputs.begin(), node.inputs.end());
      for (const Attribute& attribute : node.attributes) {
        const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
        if (graph != nullptr) add_outputs(**graph);
      }
    });
  }
  return read_names_.count(name) != 0;
}

ElementType GraphTranslator::as_computed(ElementType type) const {
  return options_.widen_halves && is_half(type) ? ElementType::float32 : type;
}

std::shared_ptr<const Tensor> GraphTranslator::as_computed(
    std::shared_ptr<const Tensor> tensor) const {
  if (as_computed(tensor->type) == tensor->type) return tensor;
  return std::make_shared<const Tensor>(widened(*tensor));
}

std::shared_ptr<const Tensor> GraphTranslator::as_computed(const Tensor& tensor) const {
  return as_computed(std::make_shared<const Tensor>(tensor));
}

void GraphTranslator::add_initializers(const Graph& graph) {
  for (const Tensor& tensor : graph.initializers) define(tensor.name, value_of(tensor));
}

Value GraphTranslator::value_of(const Tensor& initializer) {
  const auto found = classification_.initializers.find(&initializer);
  if (found == classification_.initializers.end())
    return Value::of_constant(as_computed(initializer));
  return value_of(initializer, found->second);
}

Value GraphTranslator::value_of(const Tensor& tensor, const Classified& classified) {
  return is_kept(classified.role) ? parameter(tensor, classified)
                                  : Value::of_constant(as_computed(tensor));
}

Value GraphTranslator::parameter(const Tensor& tensor, const Classified& classified) {
  Value value;
  value.type = as_computed(tensor.type);
  value.rank = static_cast<std::int64_t>(tensor.dims.size());
  value.dims = tensor.dims;
  value.text = attribute_expression(classified.name);
  value.has_gradient = classified.role == Role::trainable;
  auto& list = value.has_gradient ? result_.module.parameters : result_.module.buffers;
  list.push_back({classified.name, as_computed(tensor)});
  return value;
}

std::string GraphTranslator::constant_text(std::shared_ptr<const Tensor> tensor,
                                           std::string_view hint) {
  const auto known = constant_texts_.find(tensor.get());
  if (known != constant_texts_.end()) return known->second;
  const std::string name = constant_names_.make(hint.empty() ? "constant" : hint);
  const std::string text = "CONSTANTS." + name;
  constant_texts_.emplace(tensor.get(), text);
  result_.module.constants.emplace(name, std::move(tensor));
  return text;
}

std::string GraphTranslator::text_of(const Value& value) {
  if (!value.text.empty()) return value.text;
  if (value.constant) return constant_text(value.constant, value.constant->name);
  const auto dtype = torch_dtype(value.type);
  if (!value.integers || !dtype) throw Unsupported("reads a value whose elements nothing gives");
  const Expression elements =
      value.rank == 0 ? Expression(value.integers->front()) : list(*value.integers);
  needs_device_ = true;
  return call("torch.tensor", elements, keyword("dtype", *dtype), keyword("device", "device"))
      .text();
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

// What comes behind the logits is not computed where they are asked for.
void GraphTranslator::give_logits_after(const Node& node) {
  const std::string& logits = options_.logits;
  const auto made = std::find(node.outputs.begin(), node.outputs.end(), logits);
  if (logits.empty() || made == node.outputs.end()) return;
  const Value* value = find(logits);
  if (value == nullptr || value->kind != Value::Kind::tensor) return;
  const std::vector<ValueInfo>& outputs = model_.graph.outputs;
  const bool are_tensors = std::all_of(outputs.begin(), outputs.end(), [](const auto& output) {
    return output.kind == ValueInfo::Kind::tensor;
  });
  if (!are_tensors) return;
  const std::string text = text_of(*value);
  lines_.open("if self." + std::string(kGivesLogits) + ":");
  const std::string entry = string_literal(*options_.output) + ": " + text;
  lines_.add("return " + (outputs.size() == 1 ? text : "{" + entry + "}"));
  lines_.close();
  result_.module.may_give_logits = true;
}

bool GraphTranslator::reads_integer_matrix(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
    const Value* value = find(name);
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
  if (node.outputs.empty()) return;  // what it makes cannot be read
  if (give_own_parameter(node)) return;
  if (fold(node, known)) {
    ++result_.folded_nodes;
    return check_outputs(node);
  }
  NodeContext context(*this, node);
  known.translate(context);
  check_outputs(node);
  if (!evaluating_) {
    ++result_.operators[node.op_type];
    record_step(node, known);
  }
}

// A file can name more outputs than an operator has, or than a graph inside it gives.
void GraphTranslator::check_outputs(const Node& node) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (!name.empty() && scopes_.back().count(name) == 0 && is_read(name))
      throw Unsupported("does not make its output " + std::to_string(i) + ", '" + name + "'");
  }
}

bool GraphTranslator::give_own_parameter(const Node& node) {
  const auto found = classification_.own.find(&node);
  if (found == classification_.own.end()) return false;
  define(node.outputs.front(), value_of(*found->second.tensor, found->second));
  return true;
}

// Outputs without a gradient of their own (Dropout's mask, MaxPool's indices) are a step by
// themselves, so that they do not cut off the others.
void GraphTranslator::record_step(const Node& node, const Operator& known) {
  GradientStep flowing{
      describe(node), node.op_type, names_read(node), {}, known.gradient == Gradient::flows};
  GradientStep cut = flowing;
  cut.flows = false;
  const bool reaches =
      std::any_of(flowing.inputs.begin(), flowing.inputs.end(), [&](const auto& name) {
        const Value* value = find(name);
        return value != nullptr && value->has_gradient;
      });
  for (const std::string& name : node.outputs) {
    const auto found = scopes_.back().find(name);
    if (name.empty() || found == scopes_.back().end()) continue;
    const bool floats = is_floating(found->second.type);
    (floats ? flowing : cut).outputs.push_back(name);
    // What is downstream of a stop is kept reachable on purpose: the search names where it stops.
    found->second.has_gradient = reaches && flowing.flows && floats;
  }
  result_.steps.push_back(std::move(flowing));
  if (!cut.outputs.empty()) result_.steps.push_back(std::move(cut));
}

std::vector<Value> GraphTranslator::translate_graph(const Graph& graph, std::vector<Value> inputs) {
  const InnerScope inner(scopes_);
  add_initializers(graph);
  for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) {
    define(graph.inputs[i].name, std::move(inputs[i]));
  }
  translate_nodes(graph);
  std::vector<Value> outputs;
  for (const ValueInfo& output : graph.outputs) {
    const Value* value = find(output.name);
    if (value == nullptr) throw Unsupported("holds nodes that cannot be imported");
    outputs.push_back(*value);
  }
  return outputs;
}

void GraphTranslator::declare_inputs() {
  for (const ValueInfo& input : model_.graph.inputs) {
    if (input.kind == ValueInfo::Kind::other) {
      throw UserError("model '" + model_.path.string() + "': input '" + input.name +
                      "' is neither a tensor nor a sequence of tensors");
    }
    Value value;
    value.kind =
        input.kind == ValueInfo::Kind::sequence ? Value::Kind::sequence : Value::Kind::tensor;
    value.type = as_computed(input.type);
    value.text = identifiers_.make(input.name);
    if (input.shape && input.shape->size() > kMostDimensions) {
      throw UserError("model '" + model_.path.string() + "': input '" + input.name + "' has " +
                      std::to_string(input.shape->size()) + " dimensions; PyTorch has at most " +
                      std::to_string(kMostDimensions));
    }
    if (input.shape && value.kind == Value::Kind::tensor)
      value.rank = static_cast<std::int64_t>(input.shape->size());
    result_.arguments.emplace_back(input.name, value.text);
    // Data may come in another type: bytes for a graph that reads int64.
    const auto dtype = torch_dtype(value.type);
    if (dtype && value.kind == Value::Kind::tensor)
      lines_.add(value.text + " = " + value.text + ".to(" + *dtype + ")");
    define(input.name, std::move(value));
  }
}

std::string GraphTranslator::signature() const {
  std::string text = "def forward(self";
  for (std::size_t i = 0; i < result_.arguments.size(); ++i) {
    const bool sequence = model_.graph.inputs[i].kind == ValueInfo::Kind::sequence;
    text += ", " + result_.arguments[i].second + ": " +
            annotation_of(sequence ? Value::Kind::sequence : Value::Kind::tensor);
  }
  return text + ") -> " + return_type() + ":\n";
}

std::string GraphTranslator::return_type() const {
  const std::vector<ValueInfo>& outputs = model_.graph.outputs;
  if (outputs.size() == 1) return annotation_of(output_value(outputs.front()).kind);
  const bool tensors = std::all_of(outputs.begin(), outputs.end(), [&](const ValueInfo& output) {
    return output_value(output).kind == Value::Kind::tensor;
  });
  if (tensors) return "Dict[str, Tensor]";
  std::string text;
  for (const ValueInfo& output : outputs) {
    text += (text.empty() ? "" : ", ") + annotation_of(output_value(output).kind);
  }
  return "Tuple[" + text + "]";
}

std::string GraphTranslator::return_line() {
  const std::vector<ValueInfo>& outputs = model_.graph.outputs;
  if (outputs.size() == 1) return "return " + text_of(output_value(outputs.front()));
  const bool named = return_type().front() == 'D';
  std::string text;
  for (const ValueInfo& output : outputs) {
    text += (text.empty() ? "" : ", ") + (named ? string_literal(output.name) + ": " : "") +
            text_of(output_value(output));
  }
  return "return " + (named ? "{" + text + "}" : "(" + text + ")");
}

ModuleSource GraphTranslator::finish_module() {
  lines_.add(return_line());
  std::string head;
  if (needs_device_) {
    const bool from_input =
        !model_.graph.inputs.empty() && model_.graph.inputs.front().kind == ValueInfo::Kind::tensor;
    head = "    device = " +
           (from_input ? result_.arguments.front().second + ".device"
                       : std::string("torch.device(\"cpu\")")) +
           "\n";
  }
  result_.module.methods = helper_methods(helpers_) + signature() + head + lines_.text();
  return std::move(result_.module);
}

// Where the output that is used is possible, others need not be.
void GraphTranslator::find_impossible_outputs() {
  const std::string why = obstacles_.in_brief();
  for (const ValueInfo& output : model_.graph.outputs)
    if (find(output.name) == nullptr) result_.impossible.emplace_back(output.name, why);
}

void GraphTranslator::refuse() const {
  OutputsInDoubt outputs;
  for (const ValueInfo& output : model_.graph.outputs) {
    const Value* value = find(output.name);
    const bool is_wanted = !options_.output || output.name == *options_.output;
    if (value == nullptr && is_wanted) outputs.impossible.push_back(output.name);
    if (value != nullptr && value->has_gradient) outputs.possible.push_back(output.name);
  }
  throw UserError(refusal_text(model_, classification_, obstacles_, outputs));
}

Translation GraphTranslator::run() {
  add_initializers(model_.graph);
  declare_inputs();
  translate_nodes(model_.graph);
  if (!obstacles_.empty()) {
    find_impossible_outputs();
    const bool are_wanted =
        options_.output ? find(*options_.output) == nullptr : !result_.impossible.empty();
    if (are_wanted) refuse();
    if (!result_.impossible.empty()) return std::move(result_);
  }
  if (result_.nodes - result_.folded_nodes > kMostTranslatedNodes) {
    throw UserError("model '" + model_.path.string() + "' has " +
                    std::to_string(result_.nodes - result_.folded_nodes) +
                    " nodes; TorchScript runs up to " + std::to_string(kMostTranslatedNodes));
  }
  for (const ValueInfo& output : model_.graph.outputs) result_.outputs.push_back(output.name);
  result_.module = finish_module();
  return std::move(result_);
}

Translation translate(const Model& model, const Classification& classification,
                      const TranslationOptions& options) {
  return GraphTranslator(model, classification, options).run();
}

}  // namespace decent::onnx
