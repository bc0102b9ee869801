#include "decent/model/written_attributes.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "decent/model/forward_graph.h"

namespace decent {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

/// Follows values back to the attributes that they are, or of which they are views.
class Attributes {
 public:
  explicit Attributes(const Graph& forward) : forward_(forward) {}

  void add(const Value* value) {
    left_.push_back(value);
    while (!left_.empty()) {
      const Value* next = left_.back();
      left_.pop_back();
      if (seen_.insert(next).second) follow(next);
    }
  }
  WrittenAttributes take() { return std::move(found_); }

 private:
  void follow(const Value* value) {
    const Node* node = value->node();
    if (node->kind() == c10::prim::Constant) return;
    if (node->kind() == c10::prim::GetAttr) return add_attribute(node);
    if (node->kind() == c10::prim::Param) return follow_input(node);
    if (!node->blocks().empty()) return follow_blocks(node);
    if (const c10::FunctionSchema* schema = node->maybeSchema()) return follow_call(value, *schema);
    // Calls that could not be expanded, and results of torch.jit.fork.
    const bool is_call = node->kind() == c10::prim::CallMethod ||
                         node->kind() == c10::prim::CallFunction ||
                         node->hasAttribute(c10::attr::Subgraph);
    found_.others |= is_call;
    if (!is_call) push(node->inputs());  // e.g. of lists and tuples
  }

  void add_attribute(const Node* node) {
    std::string path = node->s(c10::attr::name);
    const Value* owner = node->input();
    for (; owner->node()->kind() == c10::prim::GetAttr; owner = owner->node()->input())
      path = owner->node()->s(c10::attr::name) + "." + path;
    if (owner == forward_.inputs()[0]) {
      found_.paths.insert(path);
    } else {
      found_.others = true;
    }
  }

  // An argument of forward is no attribute; a value that a loop carries may be one.
  void follow_input(const Node* parameters) {
    const Node* owner = parameters->owningBlock()->owningNode();
    if (owner != nullptr) follow_blocks(owner);
  }

  void follow_blocks(const Node* node) {
    if (node->kind() != c10::prim::If) push(node->inputs());
    for (const Block* block : node->blocks()) push(block->outputs());
  }

  // A result without an alias mark has memory of its own.
  void follow_call(const Value* value, const c10::FunctionSchema& schema) {
    const auto& results = schema.returns();
    if (value->offset() < results.size() && results[value->offset()].alias_info() == nullptr)
      return;
    push(value->node()->inputs());
  }

  // Follows only values that can be or contain tensors.
  template <typename Values>
  void push(const Values& values) {
    for (const Value* each : values) {
      const bool is_plain = each->type()->isSubtypeOf(*c10::NumberType::get()) ||
                            each->type()->isSubtypeOf(*c10::BoolType::get()) ||
                            each->type()->isSubtypeOf(*c10::StringType::get());
      if (!is_plain) left_.push_back(each);
    }
  }

  const Graph& forward_;
  WrittenAttributes found_;
  std::vector<const Value*> left_;
  std::set<const Value*> seen_;
};

}  // namespace

WrittenAttributes find_written_attributes(const Graph& forward) {
  Attributes attributes(forward);
  visit_nodes(forward, [&](const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) return;
    const std::size_t count = std::min(schema->arguments().size(), node->inputs().size());
    for (std::size_t i = 0; i < count; ++i) {
      const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) attributes.add(node->inputs()[i]);
    }
  });
  return attributes.take();
}

}  // namespace decent
