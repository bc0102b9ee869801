#include "decent/onnx/format/check_functions.h"

#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "decent/core/quote.h"
#include "decent/onnx/format/parse.h"
#include "decent/onnx/format/walk.h"

namespace decent::onnx {
namespace {

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

}  // namespace

void check_functions(const Input& input, const Model& model) {
  FunctionChecker checker(input, model);
  checker.check_all();
  checker.expanded_size(model.graph.nodes);
}

}  // namespace decent::onnx
