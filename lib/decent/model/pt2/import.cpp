#include "decent/model/pt2/import.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/pt2/module.h"
#include "decent/model/reason.h"
#include "decent/pt2/analyse/schemas.h"

namespace decent {
namespace {

// PyTorch's declarations of its operators, from LibTorch's registry.
class RegisteredSchemas final : public pt2::OperatorSchemas {
 public:
  const pt2::OperatorSchema* find(const pt2::Target& target) const override;

 private:
  // Each operator that was looked up; null if LibTorch does not have it.
  mutable std::map<std::string, std::unique_ptr<const pt2::OperatorSchema>> known_;
};

bool is_a(const c10::Argument& argument, c10::TypeKind kind) {
  const c10::TypePtr& type = argument.type();
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

// The one program of the archive, whatever its name, or its programs for each mode.
pt2::Programs programs_of(const pt2::Archive& archive) {
  const pt2::ExportedProgram* train = archive.find("train");
  const pt2::ExportedProgram* eval = archive.find("eval");
  if (archive.programs.size() == 1) return {&archive.programs.front(), nullptr};
  if (archive.programs.size() == 2 && train != nullptr && eval != nullptr) return {train, eval};
  std::vector<std::string> names;
  for (const pt2::ExportedProgram& each : archive.programs) names.push_back(in_quotes(each.name));
  throw UserError(archive.what() + " holds several programs (" + some_of(names, 5) +
                  "): one alone, or two called 'train' and 'eval' can be trained");
}

}  // namespace

Pt2Import import_pt2(const std::filesystem::path& path) {
  Pt2Import result;
  result.archive = pt2::read_archive(path);
  result.programs = programs_of(result.archive);
  const std::string about = result.archive.what();
  result.translation = pt2::translate(result.programs, RegisteredSchemas(), about);
  try {
    result.module = make_module(result.translation.module);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw UserError(about +
                    " cannot be imported: what its program translates to does not compile: " +
                    reason_of(error));
  }
  return result;
}

}  // namespace decent
