#include "decent/onnx/graph/inline_functions.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "decent/core/error.h"

namespace decent::onnx {
namespace {

// The most nodes that a model may have after inlining. Functions that call others twice double
// their size with every level, so a small file can ask for any number of nodes.
constexpr std::size_t kMaxInlinedNodes = 200'000;
// Lists and strings count as one more node for each of these many elements or characters.
constexpr std::size_t kElementsPerNode = 256;
constexpr std::size_t kDeepestCall = 100;
// Names grow with every level of calls; longer names are cut and numbered.
constexpr std::size_t kLongestName = 200;

/// The meaning of names and attributes in the copy of a graph: the same in the model's own graphs,
/// others inside a function.
struct Scope {
  const Node* call = nullptr;
  const Function* function = nullptr;
  std::string prefix;
  std::map<std::string, std::string> names;
  std::size_t depth = 0;
};

std::size_t size_of(const Attribute::Value& value) {
  const auto count = [](const auto& each) -> std::size_t {
    using T = std::decay_t<decltype(each)>;
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      std::size_t total = each.size();
      for (const std::string& text : each) total += text.size();
      return total;
    } else if constexpr (requires { each.size(); }) {
      return each.size();
    } else {
      return 0;
    }
  };
  return std::visit(count, value);
}

std::size_t size_of(const Node& node) {
  std::size_t total = node.inputs.size() + node.outputs.size();
  for (const Attribute& attribute : node.attributes) total += size_of(attribute.value);
  for (const auto& [key, value] : node.metadata) total += key.size() + value.size();
  return total;
}

std::string call_name(const Node& call) {
  if (!call.name.empty()) return call.name;
  const auto named = std::find_if(call.outputs.begin(), call.outputs.end(),
                                  [](const std::string& name) { return !name.empty(); });
  return named == call.outputs.end() ? call.op_type : *named;
}

class Inliner {
 public:
  explicit Inliner(const Model& model) : model_(model) {
    for (const Function& function : model.functions)
      functions_[{function.domain, function.name, function.overload}] = &function;
  }

  Model run() {
    Model result = model_;
    result.functions.clear();
    if (!functions_.empty()) collect_names(model_.graph);
    Scope itself;
    result.graph = copied(model_.graph, itself);
    return result;
  }

 private:
  const Function* find(const Node& node) const {
    const auto found = functions_.find({node.domain, node.op_type, node.overload});
    return found == functions_.end() ? nullptr : found->second;
  }

  void collect_names(const Graph& graph) {
    for (const Tensor& tensor : graph.initializers) taken_.insert(tensor.name);
    for (const ValueInfo& input : graph.inputs) taken_.insert(input.name);
    for (const Node& node : graph.nodes) {
      taken_.insert(node.outputs.begin(), node.outputs.end());
      for (const Attribute& attribute : node.attributes) {
        const auto* nested = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
        if (nested != nullptr && *nested) collect_names(**nested);
      }
    }
  }

  std::string unique_name(const std::string& wanted) {
    const std::string base = wanted.substr(0, kLongestName);
    std::string name = base;
    while (!taken_.insert(name).second) name = base + "_" + std::to_string(++numbers_[base]);
    return name;
  }

  // The name of a value in the copy.
  std::string renamed(const std::string& name, Scope& scope) {
    if (name.empty() || scope.function == nullptr) return name;
    const auto known = scope.names.find(name);
    if (known != scope.names.end()) return known->second;
    return scope.names[name] = unique_name(scope.prefix + "/" + name);
  }

  void count(std::size_t elements) {
    nodes_ += 1 + elements / kElementsPerNode;
    if (nodes_ <= kMaxInlinedNodes || functions_.empty()) return;
    throw UserError("model '" + model_.path.string() +
                    "': its functions, put in place of their calls, make more than " +
                    std::to_string(kMaxInlinedNodes) + " nodes");
  }

  Graph copied(const Graph& graph, Scope& scope) {
    count((graph.initializers.size() + graph.value_infos.size()) * kElementsPerNode);
    Graph copy = graph;
    for (Tensor& tensor : copy.initializers) tensor.name = renamed(tensor.name, scope);
    for (auto* list : {&copy.inputs, &copy.outputs, &copy.value_infos}) {
      for (ValueInfo& info : *list) info.name = renamed(info.name, scope);
    }
    copy.nodes.clear();
    for (const Node& node : graph.nodes) append(node, scope, copy.nodes);
    return copy;
  }

  // Adds the copy of a node to `nodes`, or the nodes of the function that it calls.
  void append(const Node& node, Scope& scope, std::vector<Node>& nodes) {
    count(size_of(node));
    Node copy = node;
    for (std::string& name : copy.inputs) name = renamed(name, scope);
    for (std::string& name : copy.outputs) name = renamed(name, scope);
    copy.attributes.clear();
    for (const Attribute& attribute : node.attributes) append(attribute, scope, copy.attributes);
    if (scope.function != nullptr) move_out_of_function(copy, scope);
    if (const Function* function = find(copy)) {
      expand(copy, *function, scope.depth + 1, nodes);
    } else {
      nodes.push_back(std::move(copy));
    }
  }

  void append(const Attribute& attribute, Scope& scope, std::vector<Attribute>& attributes) {
    const Attribute* source = &attribute;
    Scope* names = &scope;
    Scope itself;
    if (!attribute.ref_attr_name.empty()) {
      source = resolved(attribute.ref_attr_name, scope);
      if (source == nullptr) return;  // the call leaves the attribute out, and so does the node
      names = &itself;                // the caller's attributes use the caller's names
    }
    Attribute copy = *source;
    copy.name = attribute.name;
    if (auto* nested = std::get_if<std::shared_ptr<Graph>>(&copy.value); nested && *nested)
      *nested = std::make_shared<Graph>(copied(**nested, *names));
    attributes.push_back(std::move(copy));
  }

  static const Attribute* resolved(const std::string& name, const Scope& scope) {
    if (scope.function == nullptr) return nullptr;
    if (const Attribute* given = scope.call->find(name)) return given;
    for (const Attribute& attribute : scope.function->default_attributes) {
      if (attribute.name == name) return &attribute;
    }
    return nullptr;
  }

  static void move_out_of_function(Node& node, const Scope& scope) {
    const std::string name = node.name.empty() ? node.op_type : node.name;
    node.name = (scope.prefix + "/" + name).substr(0, kLongestName);
    const auto opset = scope.function->opsets.find("");
    node.opset = opset == scope.function->opsets.end() ? 0 : opset->second;
  }

  void expand(const Node& call, const Function& function, std::size_t depth,
              std::vector<Node>& nodes) {
    if (depth > kDeepestCall) {
      throw UserError("model '" + model_.path.string() +
                      "': calls of its functions are nested over " + std::to_string(kDeepestCall) +
                      " deep, at '" + function.name + "'");
    }
    Scope scope;
    scope.call = &call;
    scope.function = &function;
    scope.prefix = call_name(call);
    scope.depth = depth;
    bind(function.inputs, call.inputs, scope);
    const std::vector<std::pair<std::string, std::string>> handed_on = bind_outputs(scope);
    for (const Node& node : function.nodes) append(node, scope, nodes);
    for (const auto& [from, to] : handed_on) nodes.push_back(identity(from, to, call));
  }

  static void bind(const std::vector<std::string>& formal, const NameList& actual, Scope& scope) {
    for (std::size_t i = 0; i < formal.size(); ++i) scope.names[formal[i]] = actual[i];
  }

  // A function may return an input, or one value twice. Such outputs need a node, given as {from,
  // to}.
  std::vector<std::pair<std::string, std::string>> bind_outputs(Scope& scope) {
    std::vector<std::pair<std::string, std::string>> handed_on;
    const NameList& actual = scope.call->outputs;
    for (std::size_t i = 0; i < scope.function->outputs.size() && i < actual.size(); ++i) {
      if (actual[i].empty()) continue;
      const auto [name, is_new] = scope.names.emplace(scope.function->outputs[i], actual[i]);
      if (!is_new) handed_on.emplace_back(name->second, actual[i]);
    }
    return handed_on;
  }

  Node identity(const std::string& from, const std::string& to, const Node& call) {
    count(0);
    Node node;
    node.name = call_name(call) + "/Identity";
    node.op_type = "Identity";
    node.inputs = {from};
    node.outputs = {to};
    node.opset = model_.opset();
    return node;
  }

  const Model& model_;
  std::map<std::tuple<std::string, std::string, std::string>, const Function*> functions_;
  std::set<std::string> taken_;                 // names of values
  std::map<std::string, std::size_t> numbers_;  // numbers that make names unique
  std::size_t nodes_ = 0;
};

}  // namespace

Model inline_functions(const Model& model) { return Inliner(model).run(); }

}  // namespace decent::onnx
