#include "decent/model/forward_graph.h"

#include <c10/util/hash.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace decent {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::GraphFunction;
using torch::jit::Node;
using torch::jit::Value;
using Object = torch::jit::ObjectPtr;

GraphFunction* graph_function(torch::jit::Function* function) {
  return function == nullptr ? nullptr : torch::jit::tryToGraphFunction(*function);
}

// The function that a node calls. Null if it is no call, a call through an interface, or a call of
// something without a graph.
GraphFunction* callee_of(const Node* node) {
  if (node->kind() == c10::prim::CallFunction) {
    const auto type = node->input(0)->type()->cast<c10::FunctionType>();
    return type ? graph_function(type->function()) : nullptr;
  }
  if (node->kind() != c10::prim::CallMethod) return nullptr;
  const auto owner = node->input(0)->type()->cast<c10::ClassType>();
  return owner ? graph_function(owner->findMethod(node->s(c10::attr::name))) : nullptr;
}

c10::InterfaceTypePtr called_interface(const Node* node) {
  if (node->kind() != c10::prim::CallMethod) return nullptr;
  return node->input(0)->type()->cast<c10::InterfaceType>();
}

// Inserts a copy of `body` before the node, with the node's inputs, and returns the copy's outputs.
std::vector<Value*> insert_before(Node* node, Graph& body) {
  std::vector<Value*> inputs(node->inputs().begin(), node->inputs().end());
  if (node->kind() == c10::prim::CallFunction) inputs.erase(inputs.begin());  // the function
  const torch::jit::WithInsertPoint before(node);
  return torch::jit::insertGraph(*node->owningGraph(), body, inputs);
}

void replace(Node* node, Graph& body) {
  const std::vector<Value*> outputs = insert_before(node, body);
  for (std::size_t i = 0; i < outputs.size(); ++i) node->output(i)->replaceAllUsesWith(outputs[i]);
  node->destroy();
}

// Replaces calls that name their function. torch::jit::Inline would replace them only one call deep
// while the optimizing executor is off.
class DirectCalls {
 public:
  std::shared_ptr<Graph> expanded(Graph& graph) {
    const std::shared_ptr<Graph> copy = graph.copy();
    expand(copy->block());
    return copy;
  }

  // Expands each function once, because deep models call the same one often.
  Graph& body_of(GraphFunction& function) {
    auto known = bodies_.find(&function);
    if (known == bodies_.end())
      known = bodies_.emplace(&function, expanded(*function.graph())).first;
    return *known->second;
  }

 private:
  void expand(Block* block) {
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
      Node* node = *it++;  // before the node may go
      for (Block* inner : node->blocks()) expand(inner);
      if (node->hasAttribute(c10::attr::Subgraph)) {  // torch.jit.fork
        insert_before(node, *expanded(*node->g(c10::attr::Subgraph)));
      } else if (GraphFunction* callee = callee_of(node)) {
        replace(node, body_of(*callee));
      }
    }
  }

  std::map<const GraphFunction*, std::shared_ptr<Graph>> bodies_;
};

// Replaces calls through an interface by the method of the object that the module holds at that
// place. If the object cannot be told, every class that has the interface is assumed.
class InterfaceCalls {
 public:
  InterfaceCalls(const torch::jit::Module& module, Graph& graph, DirectCalls& calls)
      : module_(module), graph_(graph), calls_(calls) {}

  void expand(Block* block) {
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
      Node* node = *it;
      for (Block* inner : node->blocks()) expand(inner);
      if (!called_interface(node) || !left_.insert(node).second) {
        ++it;
        continue;
      }
      Node* before = node->prev();
      expand(node);
      it = ++before->iterator();  // the inserted nodes may have such calls, too
    }
  }

 private:
  void expand(Node* node) {
    const std::vector<GraphFunction*> methods = methods_of(node);
    if (methods.size() == 1) {
      left_.erase(node);
      replace(node, calls_.body_of(*methods.front()));
      return;
    }
    for (GraphFunction* each : methods) {
      // Inserting it once is enough for readers of the graph, and a method may call its own
      // interface.
      if (seen_.insert(each).second) insert_before(node, calls_.body_of(*each));
    }
  }

  std::vector<GraphFunction*> methods_of(const Node* call) const {
    const std::string& name = call->s(c10::attr::name);
    const std::vector<Object> objects = objects_of(call->input(0));
    if (objects.empty()) return methods_of(*called_interface(call), name);
    std::vector<GraphFunction*> methods;
    for (const Object& object : objects) {
      GraphFunction* method = graph_function(object->type()->findMethod(name));
      const bool known = std::find(methods.begin(), methods.end(), method) != methods.end();
      if (method != nullptr && !known) methods.push_back(method);
    }
    return methods;
  }

  // The parts of the module that a value may be; nothing if that cannot be told.
  std::vector<Object> objects_of(const Value* value) const {
    if (value == graph_.inputs()[0]) return {module_._ivalue()};
    const Node* node = value->node();
    const bool chosen = node->kind() == c10::prim::ModuleContainerIndex;  // layers[i]
    if (!chosen && node->kind() != c10::prim::GetAttr) return {};
    std::vector<Object> objects;
    for (const Object& owner : objects_of(node->input(0))) {
      for (std::size_t slot = 0; slot < owner->type()->numAttributes(); ++slot) {
        const bool meant =
            chosen || owner->type()->getAttributeName(slot) == node->s(c10::attr::name);
        const c10::IValue& held = owner->getSlot(slot);
        if (meant && held.isObject()) objects.push_back(held.toObject());
      }
    }
    return objects;
  }

  std::vector<GraphFunction*> methods_of(const c10::InterfaceType& interface,
                                         const std::string& name) const {
    std::vector<GraphFunction*> methods;
    for (torch::jit::Function* function : module_._ivalue()->compilation_unit()->get_functions()) {
      GraphFunction* method = graph_function(function);
      if (method == nullptr || method->name() != name || method->graph()->inputs().empty())
        continue;
      const auto owner = method->graph()->inputs()[0]->type()->cast<c10::ClassType>();
      if (owner && owner->isSubtypeOf(interface)) methods.push_back(method);
    }
    return methods;
  }

  const torch::jit::Module& module_;
  Graph& graph_;
  DirectCalls& calls_;
  std::set<const Node*> left_;           // calls that stay
  std::set<const GraphFunction*> seen_;  // that were inserted before a call
};

void visit_block(const Block* block, const std::function<void(const Node*)>& visit) {
  for (const Node* node : block->nodes()) {
    for (const Block* inner : node->blocks()) visit_block(inner, visit);
    visit(node);
  }
}

std::string code_text(const torch::jit::Module& module) {
  return forward_graph(module)->toString(/*print_source_locations=*/false);
}

// Numbers and texts that a model keeps as attributes control its code (self.eps, self.heads). The
// train/eval switch is left out, because the trainer sets it.
std::string attributes_text(const torch::jit::Module& module) {
  std::ostringstream text;
  for (const auto& [path, part] : module.named_modules()) {
    for (const auto& attribute : part.named_attributes(/*recurse=*/false)) {
      const c10::IValue& value = attribute.value;
      const bool plain = value.isInt() || value.isDouble() || value.isBool() || value.isString() ||
                         value.isIntList() || value.isDoubleList() || value.isBoolList();
      if (!plain || attribute.name == "training") continue;
      text << path << '.' << attribute.name << '=' << value << '\n';
    }
  }
  return text.str();
}

}  // namespace

std::shared_ptr<Graph> forward_graph(const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  if (!method) return std::make_shared<Graph>();
  DirectCalls calls;
  std::shared_ptr<Graph> graph = calls.expanded(*method->graph());
  InterfaceCalls(module, *graph, calls).expand(graph->block());
  return graph;
}

void visit_nodes(const Graph& graph, const std::function<void(const Node*)>& visit) {
  visit_block(graph.block(), visit);
}

std::optional<std::string> attribute_path(const Node* node, const Graph& forward) {
  std::string path = node->s(c10::attr::name);
  const torch::jit::Value* owner = node->input();
  for (; owner->node()->kind() == c10::prim::GetAttr; owner = owner->node()->input())
    path = owner->node()->s(c10::attr::name) + "." + path;
  return owner == forward.inputs()[0] ? std::optional(path) : std::nullopt;
}

std::string code_hash(const torch::jit::Module& module) {
  return c10::sha1(code_text(module) + attributes_text(module)).str();
}

}  // namespace decent
