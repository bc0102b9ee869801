#include "decent/pt2/archive/parse.h"

#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/pt2/program/walk.h"

namespace decent::pt2 {
namespace {

std::string text_of(const Node& node) {
  return "node " + std::to_string(node.place) + " (" + in_quotes(node.target) + ")";
}

// ---- graphs ----

class GraphChecker {
  using Made = std::map<std::string_view, ValueKind>;

 public:
  explicit GraphChecker(const std::string& what) : what_(what) {}

  void check(const Graph& graph, const std::string& where) {
    Made made;
    for (const Argument& input : graph.inputs) make(input, graph, made, where + "its inputs");
    for (const Node& node : graph.nodes) {
      if (++nodes_ > kMaxNodes) {
        fail("has more than " + std::to_string(kMaxNodes) + " nodes, the most that are read");
      }
      for (const NamedArgument& input : node.inputs) {
        use(input.value, made, where + text_of(node));
        if (const auto* inner = std::get_if<GraphArgument>(&input.value)) {
          check(*inner->graph, "graph " + in_quotes(inner->name) + ", ");
        }
      }
      for (const Argument& output : node.outputs) make(output, graph, made, where + text_of(node));
    }
    for (const Argument& output : graph.outputs) use(output, made, where + "its outputs");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(what_ + ": " + reason);
  }

  void make(const Argument& argument, const Graph& graph, Made& made,
            const std::string& where) const {
    for_each_value(argument, [&](const std::string& name, ValueKind kind) {
      if (!made.emplace(name, kind).second) {
        fail(where + ": value " + in_quotes(name) + " is made twice");
      }
      if (!is_described(graph, name, kind)) {
        fail(where + ": value " + in_quotes(name) + " has no type");
      }
    });
  }

  static bool is_described(const Graph& graph, const std::string& name, ValueKind kind) {
    switch (kind) {
      case ValueKind::tensor:
        return graph.tensor_values.contains(name);
      case ValueKind::sym_int:
        return graph.sym_int_values.contains(name);
      case ValueKind::sym_float:
        return graph.sym_float_values.contains(name);
      case ValueKind::sym_bool:
        return graph.sym_bool_values.contains(name);
    }
    __builtin_unreachable();
  }

  void use(const Argument& argument, const Made& made, const std::string& where) const {
    for_each_value(argument, [&](const std::string& name, ValueKind kind) {
      const auto found = made.find(name);
      if (found == made.end()) {
        fail(where + ": value " + in_quotes(name) + " is used before anything makes it");
      }
      if (found->second != kind) {
        fail(where + ": value " + in_quotes(name) + " is used as another kind than it is");
      }
    });
  }

  const std::string& what_;
  std::size_t nodes_ = 0;
};

// ---- signature ----

class SignatureChecker {
 public:
  SignatureChecker(const ExportedProgram& program, const std::string& what)
      : program_(program), what_(what) {}

  void check() const {
    check_count("input", program_.graph.inputs.size(), program_.input_specs.size());
    check_count("output", program_.graph.outputs.size(), program_.output_specs.size());
    std::size_t given = 0;
    for (std::size_t i = 0; i < program_.input_specs.size(); ++i) {
      given += std::visit(InputChecker{*this, i}, program_.input_specs[i]);
    }
    std::size_t results = 0;
    for (std::size_t i = 0; i < program_.output_specs.size(); ++i) {
      const auto* output = std::get_if<UserOutput>(&program_.output_specs[i]);
      if (output == nullptr) continue;
      check_same("output", i, output->arg, program_.graph.outputs[i]);
      ++results;
    }
    check_leaves("in_spec", program_.in_spec, given);
    check_leaves("out_spec", program_.out_spec, results);
  }

 private:
  // Each overload returns how many leaves of in_spec the input takes.
  struct InputChecker {
    const SignatureChecker& all;
    std::size_t place;

    std::size_t operator()(const UserInput& input) const {
      all.check_same("input", place, input.arg, all.program_.graph.inputs[place]);
      return 1;
    }
    std::size_t operator()(const ConstantInput&) const { return 1; }
    std::size_t operator()(const TokenInput&) const { return 0; }
    std::size_t operator()(const CustomObjInput&) const { return 0; }
    std::size_t operator()(const ParameterInput& input) const {
      return stored(input.arg, input.parameter_name, all.program_.weights);
    }
    std::size_t operator()(const BufferInput& input) const {
      return stored(input.arg, input.buffer_name,
                    input.persistent ? all.program_.weights : all.program_.constants);
    }
    std::size_t operator()(const TensorConstantInput& input) const {
      return stored(input.arg, input.tensor_constant_name, all.program_.constants);
    }
    std::size_t stored(const std::string& arg, const std::string& name,
                       const ByName<Payload>& payloads) const {
      all.check_stored(place, arg, name, payloads);
      return 0;
    }
  };

  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(what_ + ": " + reason);
  }

  void check_count(const std::string& kind, std::size_t in_graph, std::size_t in_signature) const {
    if (in_graph == in_signature) return;
    fail("its graph has " + counted(static_cast<std::int64_t>(in_graph), kind) +
         ", its signature " + std::to_string(in_signature));
  }

  // Checks that both refer to the same values.
  void check_same(const std::string& kind, std::size_t place, const Argument& in_signature,
                  const Argument& in_graph) const {
    if (values_of(in_signature) == values_of(in_graph)) return;
    fail(kind + " " + std::to_string(place) + " is another in its graph than in its signature");
  }

  static std::vector<std::pair<std::string, ValueKind>> values_of(const Argument& argument) {
    std::vector<std::pair<std::string, ValueKind>> values;
    for_each_value(argument, [&](const std::string& name, ValueKind kind) {
      values.emplace_back(name, kind);
    });
    return values;
  }

  void check_leaves(const std::string& name, const TreeSpec& tree, std::size_t expected) const {
    if (tree.leaves() == expected) return;
    fail(name + " has " + counted(static_cast<std::int64_t>(tree.leaves()), "leaf", "leaves") +
         ", the signature " + std::to_string(expected));
  }

  void check_stored(std::size_t place, const std::string& arg, const std::string& name,
                    const ByName<Payload>& payloads) const {
    check_same("input", place, TensorArgument{arg}, program_.graph.inputs[place]);
    const auto found = payloads.find(name);
    if (found == payloads.end()) fail("there are no data of " + in_quotes(name));
    check_fits(name, found->second, program_.graph.tensor_values.find(arg)->second);
  }

  void check_fits(const std::string& name, const Payload& payload, const TensorMeta& meta) const {
    if (payload.dtype != meta.dtype) {
      fail(in_quotes(name) + " is " + std::string(name_of(payload.dtype)) + ", in the graph " +
           std::string(name_of(meta.dtype)));
    }
    bool fits = payload.sizes.size() == meta.sizes.size();
    for (std::size_t i = 0; fits && i < meta.sizes.size(); ++i) {
      fits = !meta.sizes[i].value || *meta.sizes[i].value == payload.sizes[i];
    }
    if (!fits)
      fail(in_quotes(name) + " has shape " + shape_text(payload.sizes) + ", in the graph another");
  }

  const ExportedProgram& program_;
  const std::string& what_;
};

}  // namespace

void check(const ExportedProgram& program, const std::string& what) {
  GraphChecker(what).check(program.graph, "");
  SignatureChecker(program, what).check();
}

}  // namespace decent::pt2
