#include "decent/model/pt2/schemas.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <unordered_set>

namespace decent {
namespace {

bool is_a(const c10::Argument& argument, c10::TypeKind kind) {
  const c10::TypePtr type = argument.type();
  if (type->kind() != c10::TypeKind::OptionalType) return type->kind() == kind;
  return type->expectRef<c10::OptionalType>().getElementType()->kind() == kind;
}

// "Tensor(a!)[]" means the elements of the list.
bool is_written(const c10::AliasInfo& info) {
  const auto& inside = info.containedTypes();
  return info.isWrite() || std::any_of(inside.begin(), inside.end(),
                                       [](const auto& each) { return is_written(each); });
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && is_written(*argument.alias_info());
}

void add_sets(const c10::AliasInfo& info, std::unordered_set<c10::Symbol>& sets) {
  sets.insert(info.beforeSets().begin(), info.beforeSets().end());
  for (const c10::AliasInfo& each : info.containedTypes()) add_sets(each, sets);
}

// Whether, by these declarations, the result may share the argument's memory.
bool share_memory(const c10::Argument& result, const c10::Argument& argument) {
  if (result.alias_info() == nullptr || argument.alias_info() == nullptr) return false;
  std::unordered_set<c10::Symbol> own;
  std::unordered_set<c10::Symbol> sets;
  add_sets(*result.alias_info(), own);
  add_sets(*argument.alias_info(), sets);
  return std::any_of(sets.begin(), sets.end(),
                     [&](const c10::Symbol& set) { return own.count(set) != 0; });
}

pt2::OperatorSchema converted(const c10::FunctionSchema& schema) {
  pt2::OperatorSchema result;
  const auto& arguments = schema.arguments();
  for (const c10::Argument& argument : arguments) {
    result.arguments.push_back({.name = argument.name(),
                                .is_float = is_a(argument, c10::TypeKind::FloatType),
                                .is_written = is_written(argument),
                                .is_scalar = is_a(argument, c10::TypeKind::NumberType),
                                .is_tensor = is_a(argument, c10::TypeKind::TensorType)});
  }
  for (const c10::Argument& each : schema.returns()) {
    const auto source =
        std::find_if(arguments.begin(), arguments.end(),
                     [&](const c10::Argument& argument) { return share_memory(each, argument); });
    result.results_in.push_back(source == arguments.end()
                                    ? std::nullopt
                                    : std::optional<std::size_t>(source - arguments.begin()));
  }
  return result;
}

}  // namespace

const pt2::OperatorSchema* RegisteredSchemas::find(const pt2::Target& target) const {
  const auto [place, is_new] = known_.try_emplace(target.operator_name() + "." + target.overload);
  if (is_new) {
    const auto found = c10::Dispatcher::singleton().findSchema(
        {target.library + "::" + target.name, target.overload});
    if (found) {
      pt2::OperatorSchema schema = converted(found->schema());
      schema.is_random = found->hasTag(at::Tag::nondeterministic_seeded);
      place->second = std::make_unique<const pt2::OperatorSchema>(std::move(schema));
    }
  }
  return place->second.get();
}

}  // namespace decent
