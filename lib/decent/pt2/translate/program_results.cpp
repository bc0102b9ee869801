#include "decent/pt2/translate/program_results.h"

#include <set>
#include <utility>

#include "decent/core/script_text.h"
#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

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

}  // namespace

ProgramResults write_results(const std::vector<Argument>& outputs, const TreeSpec& spec,
                             const ValueScope& scope) {
  const NamesOfResults values(scope);
  std::vector<std::string> names;
  add_names(spec, "", names);
  if (!has_names(spec) || names.size() != outputs.size()) return tuple_of(outputs, values);
  return dictionary_of(outputs, names, values);
}

}  // namespace decent::pt2
