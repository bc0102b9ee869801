#include "decent/pt2/translate/program_method.h"

#include <algorithm>
#include <map>
#include <optional>

#include "decent/core/error.h"
#include "decent/core/script_text.h"
#include "decent/core/text.h"
#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/program/program.h"

namespace decent::pt2 {
namespace {

/// The result of forward: the program's results in the form that they have in the model's Python.
struct ProgramResults {
  std::string type;                   // "Dict[str, Tensor]"
  std::string expression;             // "{\"logits\": linear}"
  std::vector<std::string> left_out;  // of a dictionary: "loss (None)"
};

std::string text_of(const TreeKey& key) {
  if (const auto* name = std::get_if<std::string>(&key)) return *name;
  if (const auto* number = std::get_if<std::int64_t>(&key)) return std::to_string(*number);
  return std::get<bool>(key) ? "True" : "False";
}

bool has_names(const TreeSpec& spec) {
  return spec.kind == TreeSpec::Kind::dict || spec.kind == TreeSpec::Kind::fields;
}

// "hidden.0" for each leaf, from left to right.
void add_names(const TreeSpec& spec, const std::string& prefix, std::vector<std::string>& names) {
  if (spec.kind == TreeSpec::Kind::leaf) {
    names.push_back(prefix);
    return;
  }
  for (std::size_t i = 0; i < spec.children.size(); ++i) {
    const bool named = has_names(spec) && i < spec.keys.size();
    const std::string step = named ? text_of(spec.keys[i]) : std::to_string(i);
    add_names(spec.children[i], prefix.empty() ? step : prefix + "." + step, names);
  }
}

class NamesOfResults final : public NamesInSource {
 public:
  explicit NamesOfResults(const ValueScope& scope) : scope_(scope) {}
  std::string value(const std::string& name) const override { return scope_.text(name); }
  std::string device() const override { throw Unsupported("returns a device"); }

 private:
  const ValueScope& scope_;
};

std::string type_of(const Argument& output) {
  if (std::holds_alternative<TensorArgument>(output)) return "Tensor";
  if (std::holds_alternative<std::int64_t>(output) ||
      std::holds_alternative<SymIntArgument>(output))
    return "int";
  if (std::holds_alternative<double>(output) || std::holds_alternative<SymFloatArgument>(output))
    return "float";
  if (std::holds_alternative<bool>(output) || std::holds_alternative<SymBoolArgument>(output))
    return "bool";
  if (std::holds_alternative<std::string>(output)) return "str";
  if (std::holds_alternative<None>(output)) return "Optional[Tensor]";
  throw Unsupported("returns something that is neither a tensor nor a number");
}

bool is_tensor(const Argument& output) { return std::holds_alternative<TensorArgument>(output); }

ProgramResults dictionary_of(const std::vector<Argument>& outputs,
                             const std::vector<std::string>& names, const NamesInSource& values) {
  ProgramResults results{.type = "Dict[str, Tensor]", .expression = "", .left_out = {}};
  std::vector<std::string> entries;
  std::set<std::string> known;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!known.insert(names[i]).second)
      throw Unsupported("returns two results of the name '" + names[i] + "'");
    if (is_tensor(outputs[i])) {
      entries.push_back(string_literal(names[i]) + ": " + argument_text(outputs[i], values));
    } else {
      results.left_out.push_back(names[i]);
    }
  }
  results.expression = "{" + join(entries) + "}";
  return results;
}

ProgramResults tuple_of(const std::vector<Argument>& outputs, const NamesInSource& values) {
  std::vector<std::string> types;
  std::vector<std::string> texts;
  for (const Argument& each : outputs) {
    types.push_back(type_of(each));
    texts.push_back(argument_text(each, values));
  }
  if (outputs.size() == 1) return {types.front(), texts.front(), {}};
  return {"Tuple[" + join(types) + "]", "(" + join(texts) + ")", {}};
}

// A tensor if there is one result; a dictionary if Python has one, or a class with named fields;
// else a tuple. Nested results become flat, with names such as "hidden.0". Throws Unsupported.
ProgramResults write_results(const std::vector<Argument>& outputs, const TreeSpec& spec,
                             const ValueScope& scope) {
  const NamesOfResults values(scope);
  std::vector<std::string> names;
  add_names(spec, "", names);
  if (!has_names(spec) || names.size() != outputs.size()) return tuple_of(outputs, values);
  return dictionary_of(outputs, names, values);
}

// torch.export treats sizes 0 and 1 as fixed and so declares every free size to be at least 2. A
// batch of 1 works all the same.
constexpr std::int64_t kMinFreeSize = 2;

// LibTorch's compiler and interpreter overflow the stack at some 40,000.
constexpr std::size_t kMostLines = 20'000;

class ProgramWriter {
 public:
  ProgramWriter(const ExportedProgram& program, const Analysis& analysis,
                const MethodOptions& options)
      : program_(program), options_(options), method_(analysis) {}

  ProgramMethod run() {
    check_outputs();
    for (const InputSpec& input : program_.input_specs)
      std::visit([&](const auto& each) { declare(each); }, input);
    check_inputs();
    method_.add_nodes(program_.graph, scope_);
    check_length();
    result_.refusals = method_.refusals();
    if (result_.refusals.empty()) add_return();
    result_.body = method_.body(device());
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(options_.about + " " + what);
  }

  // ---- inputs of the graph

  void declare(const ParameterInput& input) {
    declare_tensor(input.arg, input.parameter_name, program_.weights, result_.parameters);
  }

  // Buffers outside of the state_dict are constants unless something writes into them, because an
  // average over workers must not touch a mask that contains -3e38.
  void declare(const BufferInput& input) {
    const auto& stored = input.persistent ? program_.weights : program_.constants;
    if (input.persistent || options_.written.count(input.buffer_name) != 0) {
      declare_tensor(input.arg, input.buffer_name, stored, result_.buffers);
    } else {
      declare_constant(input.arg, input.buffer_name);
    }
  }

  void declare(const TensorConstantInput& input) {
    declare_constant(input.arg, input.tensor_constant_name);
  }

  void declare(const UserInput& input) {
    const std::string* name = value_name(input.arg);
    const bool is_tensor = std::holds_alternative<TensorArgument>(input.arg);
    if (name == nullptr || (!is_tensor && !std::holds_alternative<SymIntArgument>(input.arg)))
      refuse("takes an input that is neither a tensor nor a whole number");
    result_.inputs.emplace_back(*name, method_.fresh_name(*name));
    result_.types.emplace_back(is_tensor ? "Tensor" : "int");
    scope_.define(*name, result_.inputs.back().second);
  }

  // The nodes already contain it.
  void declare(const ConstantInput& /*input*/) {}

  void declare(const CustomObjInput& input) const {
    refuse("holds an object of a class (ScriptObject " + in_quotes(input.custom_obj_name) +
           "), which only Python can make: keep it outside of the model");
  }
  void declare(const TokenInput& /*input*/) const {
    refuse("orders effects by tokens, as printing operators need them: export it without those");
  }

  void declare_tensor(const std::string& arg, const std::string& name,
                      const ByName<Payload>& stored, std::vector<NamedPayload>& tensors) {
    const std::string path = printable_path(name);
    check_path(path, name);
    tensors.push_back({path, &payload(name, stored)});
    scope_.define(arg, attribute_expression(path));
    if (device_of_.empty()) device_of_ = attribute_expression(path);
  }

  // Names of Python's modules may contain anything, while some names have a meaning in
  // TorchScript's modules.
  void check_path(const std::string& path, const std::string& name) {
    const auto [place, is_new] = names_.emplace(path, name);
    if (!is_new && place->second != name) {
      refuse("has tensors " + in_quotes(place->second) + " and " + in_quotes(name) +
             ", which are one name here: give one of their modules another name");
    }
    const std::string step = path.substr(path.rfind('.') + 1);
    if (step == "training" || step == "forward")
      refuse("has a tensor " + in_quotes(name) +
             ", whose name a module needs itself: give it another");
  }

  void declare_constant(const std::string& arg, const std::string& name) {
    const std::string identifier = constants_.make(options_.constants_prefix + name);
    result_.constants.emplace(identifier, &payload(name, program_.constants));
    scope_.define(arg, "CONSTANTS." + identifier);
  }

  const Payload& payload(const std::string& name, const ByName<Payload>& stored) const {
    const auto found = stored.find(name);
    if (found != stored.end()) return found->second;
    refuse("has no tensor " + in_quotes(name) + ", which its program reads");
  }

  // ---- what the export took for granted

  // "x.dim() == 2 and x.size(1) == 64": what the nodes were made for.
  void check_inputs() {
    for (std::size_t i = 0; i < result_.inputs.size(); ++i) {
      const auto meta = program_.graph.tensor_values.find(result_.inputs[i].first);
      if (meta == program_.graph.tensor_values.end()) continue;
      const std::string& name = result_.inputs[i].second;
      std::vector<std::string> conditions = {
          name + ".dim() == " + std::to_string(meta->second.sizes.size())};
      for (std::size_t dim = 0; dim < meta->second.sizes.size(); ++dim)
        add_condition(name + ".size(" + std::to_string(dim) + ")", meta->second.sizes[dim],
                      conditions);
      method_.line("assert " + join(conditions, " and ") + ", " +
                   string_literal(name + " is not as in the export: " +
                                  declared_text(meta->second) + ranges_text(meta->second)));
    }
  }

  void add_condition(const std::string& size, const SymInt& declared,
                     std::vector<std::string>& conditions) {
    if (declared.value) {
      conditions.push_back(size + " == " + std::to_string(*declared.value));
      return;
    }
    const std::optional<std::string> symbol = symbol_of(declared);
    if (!symbol) return;
    const auto [first, is_new] = sizes_.emplace(*symbol, size);
    if (!is_new) conditions.push_back(size + " == " + first->second);
    const auto range = program_.range_constraints.find(*symbol);
    if (range == program_.range_constraints.end()) return;
    const auto& [least, most] = range->second;
    if (least && *least > kMinFreeSize)
      conditions.push_back(size + " >= " + std::to_string(*least));
    if (most) conditions.push_back(size + " <= " + std::to_string(*most));
  }

  // ", s31 from 9 to 24": the bounds of free sizes.
  std::string ranges_text(const TensorMeta& meta) const {
    std::string text;
    for (const SymInt& size : meta.sizes) {
      const std::optional<std::string> symbol = symbol_of(size);
      const auto range =
          symbol ? program_.range_constraints.find(*symbol) : program_.range_constraints.end();
      if (range == program_.range_constraints.end()) continue;
      const auto& [least, most] = range->second;
      if (least && *least > kMinFreeSize) text += ", " + *symbol + " >= " + std::to_string(*least);
      if (most) text += ", " + *symbol + " <= " + std::to_string(*most);
    }
    return text;
  }

  void check_length() const {
    if (method_.line_count() <= kMostLines) return;
    refuse("has a program of " + std::to_string(method_.line_count()) +
           " steps; TorchScript runs up to " + std::to_string(kMostLines) +
           ": export a smaller model, or one with fewer turns of its loops");
  }

  // ---- results

  void check_outputs() const {
    for (const OutputSpec& output : program_.output_specs) {
      const bool is_functional = std::holds_alternative<BufferMutation>(output) ||
                                 std::holds_alternative<ParameterMutation>(output) ||
                                 std::holds_alternative<UserInputMutation>(output);
      if (is_functional) {
        refuse(
            "was decomposed (run_decompositions), which takes what training needs out of it: "
            "save what torch.export.export gives, before it is decomposed");
      }
      if (!std::holds_alternative<UserOutput>(output))
        refuse("gives gradients or tokens beside its results: export the model alone");
    }
  }

  void add_return() {
    std::vector<Argument> outputs;
    for (const OutputSpec& output : program_.output_specs)
      outputs.push_back(std::get<UserOutput>(output).arg);
    try {
      ProgramResults results = write_results(outputs, program_.out_spec, scope_);
      result_.return_type = std::move(results.type);
      result_.left_out = std::move(results.left_out);
      method_.line("return " + results.expression);
    } catch (const Unsupported& reason) {
      refuse(reason.what());
    }
  }

  std::string device() const {
    if (!device_of_.empty()) return device_of_ + ".device";
    for (std::size_t i = 0; i < result_.inputs.size(); ++i) {
      if (result_.types[i] == "Tensor") return result_.inputs[i].second + ".device";
    }
    return "torch.device(\"cpu\")";
  }

  const ExportedProgram& program_;
  const MethodOptions& options_;
  MethodWriter method_;
  ValueScope scope_;
  Identifiers constants_;
  std::map<std::string, std::string> names_;  // of tensors, by path
  std::map<std::string, std::string> sizes_;  // of inputs, by symbol
  std::string device_of_;                     // the first parameter or buffer
  ProgramMethod result_;
};

}  // namespace

std::string ProgramMethod::signature() const {
  std::string text = "self";
  for (std::size_t i = 0; i < inputs.size(); ++i) text += ", " + inputs[i].second + ": " + types[i];
  return text;
}

ProgramMethod write_method(const ExportedProgram& program, const Analysis& analysis,
                           const MethodOptions& options) {
  return ProgramWriter(program, analysis, options).run();
}

}  // namespace decent::pt2
