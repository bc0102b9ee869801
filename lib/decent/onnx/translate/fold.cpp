// Parts of a graph that are the same in every run are computed once.

#include <algorithm>
#include <limits>

#include "decent/onnx/translate/graph_translator.h"
#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

// Larger outcomes stay operators: they would sit in model.pt.
constexpr double kMostFoldedElements = 4 * 1024 * 1024;

double broadcast_count(const std::vector<const Value*>& inputs) {
  std::size_t rank = 0;
  for (const Value* input : inputs) rank = std::max(rank, input->dims->size());
  double product = 1;
  for (std::size_t back = 1; back <= rank; ++back) {
    std::int64_t largest = 0;
    for (const Value* input : inputs) {
      if (back > input->dims->size()) continue;
      largest = std::max(largest, (*input->dims)[input->dims->size() - back]);
    }
    product *= static_cast<double>(largest);
  }
  return product;
}

double sum_count(const std::vector<const Value*>& inputs) {
  double sum = 1;
  for (const Value* input : inputs) sum += static_cast<double>(input->constant->count());
  return sum;
}

double pair_count(const std::vector<const Value*>& inputs) {
  double product = 1;
  for (const Value* input : inputs) product *= static_cast<double>(input->constant->count());
  return product;
}

double product_of(const Value& value) {
  double product = 1;
  for (const double each : as_doubles(*value.constant)) product *= std::max(1.0, std::abs(each));
  return product;
}

double product_count(const std::vector<const Value*>& inputs) {
  if (inputs.size() == 1) return product_of(*inputs.front());
  double product = static_cast<double>(inputs.front()->constant->count());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!inputs[i]->integers) return std::numeric_limits<double>::infinity();
    product *= product_of(*inputs[i]);
  }
  return product;
}

double most_elements(const Operator& known, const std::vector<const Value*>& inputs) {
  switch (known.folding) {
    case Folding::never:
      return std::numeric_limits<double>::infinity();
    case Folding::broadcast:
      return broadcast_count(inputs);
    case Folding::sum:
      return sum_count(inputs);
    case Folding::pairs:
    case Folding::first:
      return pair_count(inputs);
    case Folding::product:
      return product_count(inputs);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

bool GraphTranslator::can_fold(const Node& node, const Operator& known) const {
  if (evaluating_ || !options_.evaluate || known.folding == Folding::never) return false;
  std::vector<const Value*> inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty() || (known.folding == Folding::first && !inputs.empty())) continue;
    const Value* value = find(name);
    if (value == nullptr || !value->is_constant() || value->type == ElementType::string)
      return false;
    inputs.push_back(value);
  }
  if (inputs.empty()) return false;
  return most_elements(known, inputs) <= kMostFoldedElements;
}

bool GraphTranslator::fold(const Node& node, const Operator& known) {
  if (!can_fold(node, known)) return false;
  for (Tensor& outcome : evaluate(node, known)) {
    const std::string name = outcome.name;
    define(name, Value::of_constant(std::make_shared<const Tensor>(std::move(outcome))));
  }
  return true;
}

// Those that the translation gave, without integers, of which it made constants itself.
std::vector<std::string> GraphTranslator::outputs_to_compute(const Node& node) const {
  std::vector<std::string> names;
  for (const std::string& name : node.outputs) {
    const auto found = scopes_.back().find(name);
    if (name.empty() || found == scopes_.back().end() || found->second.is_constant()) continue;
    if (found->second.kind != Value::Kind::tensor)
      throw Unsupported("makes a sequence of constants");
    names.push_back(name);
  }
  return names;
}

// The node's own translation, in a module by itself.
std::vector<Tensor> GraphTranslator::evaluate(const Node& node, const Operator& known) {
  SourceLines outer;
  std::swap(outer, lines_);
  std::set<std::string> outer_helpers;
  std::swap(outer_helpers, helpers_);
  const bool outer_device = needs_device_;
  ModuleSource source;
  evaluating_ = true;
  const auto restore = [&] {
    lines_ = std::move(outer);
    helpers_ = std::move(outer_helpers);
    needs_device_ = outer_device;
    evaluating_ = false;
    if (!source.constants.empty()) std::swap(source.constants, result_.module.constants);
  };
  try {
    NodeContext context(*this, node);
    known.translate(context);
    const std::vector<std::string> names = outputs_to_compute(node);
    std::string results;
    for (const std::string& name : names) results += text_of(scopes_.back().at(name)) + ", ";
    std::vector<Tensor> outcomes;
    if (!names.empty()) {
      std::swap(source.constants, result_.module.constants);  // lent, as there may be many
      source.methods = helper_methods(helpers_) +
                       "def forward(self) -> List[Tensor]:\n    device = torch.device(\"cpu\")\n" +
                       lines_.text() + "    return [" + results + "]\n";
      outcomes = options_.evaluate(source);
    }
    for (std::size_t i = 0; i < names.size(); ++i) outcomes.at(i).name = names[i];
    restore();
    return outcomes;
  } catch (...) {
    restore();
    throw;
  }
}

}  // namespace decent::onnx
