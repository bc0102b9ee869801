// Checks how the parts of a model fit together.

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "decent/core/text.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/read.h"
#include "decent/onnx/format/walk.h"

namespace decent::onnx {
namespace {

// The greatest depth of functions that call one another.
constexpr int kMaxCallDepth = 100;

using Key = std::tuple<std::string_view, std::string_view, std::string_view>;

class FunctionChecker {
 public:
  FunctionChecker(const Input& input, const Model& model) : input_(input) {
    for (const Function& function : model.functions) {
      const Key key(function.domain, function.name, function.overload);
      if (functions_.try_emplace(key, Entry{&function}).second) continue;
      input_.fail(name_of(function) + " is there twice");
    }
  }

  void check_all() {
    for (auto& [key, entry] : functions_) {
      check_attributes(*entry.function);
      expanded_size(entry);
    }
  }

  // The number of nodes when calls are replaced by the functions that they call.
  std::int64_t expanded_size(const std::vector<Node>& nodes) {
    std::int64_t size = 0;
    for_each_node(nodes, [&](const Node& node) {
      const auto called = functions_.find(Key(node.domain, node.op_type, node.overload));
      size += called == functions_.end() ? 1 : expanded_size(called->second);
      if (size <= kMaxNodes) return;
      input_.fail(
          "has more than " + std::to_string(kMaxNodes) +
          " nodes when its functions are put in place of their calls, the most that are read");
    });
    return size;
  }

 private:
  struct Entry {
    const Function* function = nullptr;
    std::int64_t size = -1;  // expanded; negative: not known yet
    bool open = false;       // being counted
  };

  std::int64_t expanded_size(Entry& entry) {
    if (entry.open)
      input_.fail(name_of(*entry.function) + " calls itself, perhaps through another");
    if (entry.size >= 0) return entry.size;
    if (++depth_ > kMaxCallDepth) {
      input_.fail("functions call one another more than " + std::to_string(kMaxCallDepth) +
                  " deep, the most that are read");
    }
    entry.open = true;
    entry.size = expanded_size(entry.function->nodes);
    entry.open = false;
    --depth_;
    return entry.size;
  }

  void check_attributes(const Function& function) const {
    std::set<std::string_view> known(function.attributes.begin(), function.attributes.end());
    for (const Attribute& attribute : function.default_attributes) known.insert(attribute.name);
    if (known.size() < function.attributes.size() + function.default_attributes.size()) {
      input_.fail(name_of(function) + " has two attributes of one name");
    }
    for_each_node(function.nodes, [&](const Node& node) {
      for (const Attribute& attribute : node.attributes) {
        if (attribute.ref_attr_name.empty() || known.contains(attribute.ref_attr_name)) continue;
        input_.fail(name_in_messages(node) + " in " + name_of(function) + " refers to attribute " +
                    in_quotes(attribute.ref_attr_name) + ", which the function does not have");
      }
    });
  }

  static std::string name_of(const Function& function) {
    return "function " + in_quotes(function.name) + " of domain " + in_quotes(function.domain);
  }

  const Input& input_;
  std::map<Key, Entry> functions_;
  int depth_ = 0;
};

// Throws UserError if a function is defined twice, calls itself, refers to an attribute that it
// does not have or is nested too deep, or if the model has more than kMaxNodes nodes when calls
// are expanded.
void check_functions(const Input& input, const Model& model) {
  FunctionChecker checker(input, model);
  checker.check_all();
  checker.expanded_size(model.graph.nodes);
}

constexpr std::int64_t kOldestIr = 3;   // before it there are no operator sets
constexpr std::int64_t kNewestIr = 14;  // of the onnx package 1.23
constexpr std::uint64_t kValueCost = 80;

using Opsets = std::map<std::string, std::int64_t>;

std::string shown_domain(const std::string& domain) {
  return in_quotes(domain.empty() ? "ai.onnx" : domain);
}

void check_opsets(const Input& input, const Opsets& opsets, const std::string& who) {
  const auto standard = opsets.find("");
  if (standard == opsets.end()) return;
  if (standard->second >= kOldestOpset && standard->second <= kNewestOpset) return;
  input.fail(who + "is of opset " + std::to_string(standard->second) + "; opsets " +
             std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset) +
             " are read (onnx.version_converter converts)");
}

// Follows the nodes in the file's order and keeps the names of the values made so far. Names are
// unique among the values that are visible at once, so one set suffices for all nested graphs. The
// set is a tree, because a file's names can be chosen so that all have the same hash.
class ScopeChecker {
 public:
  ScopeChecker(Input& input, const Opsets& opsets) : input_(input), opsets_(opsets) {}

  void check(const Graph& graph) {
    const std::size_t outer = made_.size();
    for (const ValueInfo& value : graph.inputs) make(value.name, "an input of the graph");
    for (const Tensor& tensor : graph.initializers) make(tensor.name, "an initializer");
    check_nodes(graph.nodes);
    for (const ValueInfo& value : graph.outputs) {
      if (visible_.contains(value.name)) continue;
      input_.fail("nothing makes " + in_quotes(value.name) + ", an output of graph " +
                  in_quotes(graph.name));
    }
    forget(outer);
  }

  void check(const Function& function) {
    const std::string who = "function " + in_quotes(function.name);
    for (const std::string& name : function.inputs) make(name, "an input of " + who);
    check_nodes(function.nodes);
    for (const std::string& name : function.outputs) {
      if (visible_.contains(name)) continue;
      input_.fail("nothing makes " + in_quotes(name) + ", an output of " + who);
    }
  }

 private:
  void check_nodes(const std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      check_domain(nodes[i]);
      check_attribute_names(nodes[i]);
      for (const std::string& name : nodes[i].inputs) {
        if (!name.empty() && !visible_.contains(name)) refuse_input(name, nodes, i);
      }
      for (const Attribute& attribute : nodes[i].attributes) {
        if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
          check(**graph);
        }
      }
      for (const std::string& name : nodes[i].outputs) {
        if (!name.empty()) make(name, nodes[i]);
      }
    }
  }

  void check_domain(const Node& node) const {
    if (opsets_.contains(node.domain)) return;
    input_.fail(name_in_messages(node) + " is of domain " + shown_domain(node.domain) +
                ", whose version opset_import does not give");
  }

  void check_attribute_names(const Node& node) const {
    std::vector<std::string_view> names;
    names.reserve(node.attributes.size());
    for (const Attribute& attribute : node.attributes) names.emplace_back(attribute.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return;
    input_.fail(name_in_messages(node) + " has the attribute " + in_quotes(*twice) + " twice");
  }

  void make(const std::string& name, const std::string& what) {
    if (name.empty()) input_.fail(what + " has no name");
    if (!add(name))
      input_.fail(what + " is named " + in_quotes(name) + ", and so is another value");
  }

  void make(const std::string& name, const Node& node) {
    if (add(name)) return;
    input_.fail(name_in_messages(node) + " makes " + in_quotes(name) +
                ", which is there already; every value is made once");
  }

  bool add(std::string_view name) {
    input_.charge(kValueCost);
    if (!visible_.insert(name).second) return false;
    made_.push_back(name);
    return true;
  }

  void forget(std::size_t outer) {
    for (std::size_t i = outer; i < made_.size(); ++i) visible_.erase(made_[i]);
    made_.resize(outer);
  }

  [[noreturn]] void refuse_input(const std::string& name, const std::vector<Node>& nodes,
                                 std::size_t user) const {
    for (std::size_t i = user; i < nodes.size(); ++i) {
      const NameList& outputs = nodes[i].outputs;
      if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) continue;
      if (i == user)
        input_.fail(name_in_messages(nodes[i]) + " uses its own output " + in_quotes(name));
      input_.fail(name_in_messages(nodes[user]) + " uses " + in_quotes(name) + " before " +
                  name_in_messages(nodes[i]) +
                  " makes it; nodes must be sorted, and none may need its own result");
    }
    input_.fail(name_in_messages(nodes[user]) + " uses " + in_quotes(name) +
                ", which is no input, no initializer and made by no node");
  }

  Input& input_;
  const Opsets& opsets_;
  std::set<std::string_view> visible_;
  std::vector<std::string_view> made_;  // in order
};

}  // namespace

void check_model(Input& input, const Model& model) {
  if (model.ir_version < kOldestIr || model.ir_version > kNewestIr) {
    input.fail("is of IR version " + std::to_string(model.ir_version) + "; " +
               std::to_string(kOldestIr) + " to " + std::to_string(kNewestIr) + " are read");
  }
  if (model.opsets.empty()) input.fail("has no opset_import, so its operators have no meaning");
  check_opsets(input, model.opsets, "");
  if (model.graph.field.size() == 0) input.fail("has no graph");
  if (model.graph.outputs.empty()) input.fail("its graph has no outputs");
  ScopeChecker(input, model.opsets).check(model.graph);
  for (const Function& function : model.functions) {
    check_opsets(input, function.opsets, "function " + in_quotes(function.name) + " ");
    ScopeChecker(input, function.opsets).check(function);
  }
  check_functions(input, model);
}

}  // namespace decent::onnx
