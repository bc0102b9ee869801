#include "decent/onnx/translate/module_builder.h"

#include "decent/onnx/format/walk.h"
#include "decent/onnx/translate/helpers.h"
#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

void MethodSource::add(const std::string& line) {
  lines_ += std::string(depth_ * 4, ' ') + line + "\n";
}

void MethodSource::open(const std::string& line) {
  add(line);
  ++depth_;
}

std::string MethodSource::helper(std::string_view name) {
  helpers_.emplace(name);
  return "self." + std::string(name);
}

std::string MethodSource::device() {
  needs_device_ = true;
  return "device";
}

std::string MethodSource::text(const std::string& signature, const std::string& device) const {
  const std::string head = needs_device_ ? "    device = " + device + "\n" : "";
  return helper_methods(helpers_) + signature + "\n" + head + lines_;
}

ModuleBuilder::ModuleBuilder(const Model& model, const Classification& classification,
                             const TranslationOptions& options)
    : model_(model), classification_(classification), options_(options) {
  scopes_.emplace_back();
}

const Value* ModuleBuilder::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found != scope->end()) return &found->second;
  }
  return nullptr;
}

Value* ModuleBuilder::find_here(std::string_view name) {
  const auto found = scopes_.back().find(name);
  return found == scopes_.back().end() ? nullptr : &found->second;
}

// All ranks that nodes compute pass here: a difference of two may be negative, a sum larger than
// any tensor's rank.
void ModuleBuilder::define(const std::string& name, Value value) {
  if (value.rank && (*value.rank < 0 || *value.rank > kMaxDimensions)) {
    throw Unsupported("makes a tensor of " + std::to_string(*value.rank) +
                      " dimensions; PyTorch has 0 to " + std::to_string(kMaxDimensions));
  }
  scopes_.back().insert_or_assign(name, std::move(value));
}

bool ModuleBuilder::is_read(std::string_view name) {
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

ElementType ModuleBuilder::as_computed(ElementType type) const {
  return options_.widen_halves && is_half(type) ? ElementType::float32 : type;
}

std::shared_ptr<const Tensor> ModuleBuilder::as_computed(
    std::shared_ptr<const Tensor> tensor) const {
  if (as_computed(tensor->type) == tensor->type) return tensor;
  return std::make_shared<const Tensor>(widened(*tensor));
}

std::shared_ptr<const Tensor> ModuleBuilder::as_computed(const Tensor& tensor) const {
  return as_computed(std::make_shared<const Tensor>(tensor));
}

void ModuleBuilder::add_initializers(const Graph& graph) {
  for (const Tensor& tensor : graph.initializers) define(tensor.name, value_of(tensor));
}

Value ModuleBuilder::value_of(const Tensor& initializer) {
  const auto found = classification_.initializers.find(&initializer);
  if (found == classification_.initializers.end())
    return Value::of_constant(as_computed(initializer));
  return value_of(initializer, found->second);
}

Value ModuleBuilder::value_of(const Tensor& tensor, const Classified& classified) {
  return is_kept(classified.role) ? parameter(tensor, classified)
                                  : Value::of_constant(as_computed(tensor));
}

Value ModuleBuilder::parameter(const Tensor& tensor, const Classified& classified) {
  Value value;
  value.type = as_computed(tensor.type);
  value.rank = static_cast<std::int64_t>(tensor.dims.size());
  value.dims = tensor.dims;
  value.text = attribute_expression(classified.name);
  value.has_gradient = classified.role == Role::trainable;
  auto& list = value.has_gradient ? source_.parameters : source_.buffers;
  list.push_back({classified.name, as_computed(tensor)});
  return value;
}

std::string ModuleBuilder::constant_text(std::shared_ptr<const Tensor> tensor,
                                         std::string_view hint) {
  const auto known = constant_texts_.find(tensor.get());
  if (known != constant_texts_.end()) return known->second;
  const std::string name = constant_names_.make(hint.empty() ? "constant" : hint);
  const std::string text = "CONSTANTS." + name;
  constant_texts_.emplace(tensor.get(), text);
  source_.constants.emplace(name, std::move(tensor));
  return text;
}

std::string ModuleBuilder::text_of(const Value& value) {
  if (!value.text.empty()) return value.text;
  if (value.constant) return constant_text(value.constant, value.constant->name);
  const auto dtype = torch_dtype(value.type);
  if (!value.integers || !dtype) throw Unsupported("reads a value whose elements nothing gives");
  const Expression elements =
      value.rank == 0 ? Expression(value.integers->front()) : list(*value.integers);
  return call("torch.tensor", elements, keyword("dtype", *dtype),
              keyword("device", method_.device()))
      .text();
}

}  // namespace decent::onnx
