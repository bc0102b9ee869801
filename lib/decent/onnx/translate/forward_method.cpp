#include "decent/onnx/translate/forward_method.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/script_text.h"

namespace decent::onnx {
namespace {

std::string annotation_of(Value::Kind kind) {
  return kind == Value::Kind::sequence ? "List[Tensor]" : "Tensor";
}

Value::Kind kind_of(const ValueInfo& input) {
  return input.kind == ValueInfo::Kind::sequence ? Value::Kind::sequence : Value::Kind::tensor;
}

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

}  // namespace decent::onnx
