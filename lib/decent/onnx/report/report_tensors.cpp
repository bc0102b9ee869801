#include "decent/onnx/report/report_tensors.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "decent/core/text.h"
#include "decent/onnx/classify/weight_slots.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/export_advice.h"

namespace decent::onnx {
namespace {

std::string rest_of_line(const ReportedTensor& reported) {
  return " " + std::string(name_of(reported.tensor->type)) + shape_text(reported.tensor->dims) +
         ": " + reported.classified->reason + reported.note;
}

// The name with a star for every number.
std::string glob_of(const std::string& name) {
  std::string glob;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) glob += c;
    if (is_digit && (glob.empty() || glob.back() != '*')) glob += '*';
  }
  return glob;
}

/// Tensors that share a line.
struct Group {
  std::string glob;
  const ReportedTensor* first = nullptr;
  std::size_t count = 0;
};

constexpr std::size_t kGroupsInBrief = 20;
constexpr std::size_t kMaxFollowedValues = 1000;  // reached from one tensor

constexpr const char* kWhereAll = "--dry-run --verbose and run.log name each";

bool is_matrix(const Tensor& tensor) {
  return std::count_if(tensor.dims.begin(), tensor.dims.end(),
                       [](std::int64_t size) { return size > 1; }) >= 2;
}

// Whether a node reads a table, such as one of positions or what the exporter made of it.
bool reads_table(const Node& node) { return node.op_type.starts_with("Gather"); }

// The operator that has the tensor as its weight, directly or after computations with other
// constants only. Values that differ from run to run, such as data to which a table is added, are
// not followed.
std::optional<std::string> weight_of(const Tensor& tensor, const Uses& uses) {
  std::vector<ValueId> reached = {uses.of(tensor)};
  std::set<ValueId> seen;
  for (std::size_t i = 0; i < reached.size() && i < kMaxFollowedValues; ++i) {
    if (!seen.insert(reached[i]).second) continue;
    for (const Use& use : uses.readers(reached[i])) {
      if (use.node == nullptr) continue;
      const Slot slot = slot_of(*use.node, use.input);
      if (slot == Slot::weight && !reads_table(*use.node)) return use.node->op_type;
      if (slot == Slot::shape) continue;
      for (const ValueId output : uses.outputs(*use.node)) {
        if (!uses.varies(output)) reached.push_back(output);
      }
    }
  }
  return std::nullopt;
}

// A tensor of two or more dimensions that goes into a weight, or that is named like a parameter;
// nothing for others.
std::optional<ReportedTensor> as_weight(const ReportedTensor& each, const Uses& uses) {
  if (!is_matrix(*each.tensor)) return std::nullopt;
  ReportedTensor weight = each;
  if (const auto op_type = weight_of(*each.tensor, uses)) {
    weight.note = "; goes into the weight of " + *op_type;
    return weight;
  }
  const bool is_named =
      each.classified->role == Role::ambiguous && is_module_name(each.tensor->name);
  return is_named ? std::optional(weight) : std::nullopt;
}

std::vector<std::string> names_of(const std::vector<ReportedTensor>& tensors) {
  std::vector<std::string> names;
  for (const ReportedTensor& each : tensors) names.push_back(each.classified->name);
  return names;
}

void add_weights(const std::vector<ReportedTensor>& weights, Detail detail,
                 std::vector<std::string>& lines) {
  std::vector<std::string> groups = grouped_lines(weights);
  const std::size_t shown = std::min(groups.size(), kGroupsInBrief);
  if (detail == Detail::full) {
    for (const ReportedTensor& each : weights) lines.push_back(tensor_line(each));
    return;
  }
  lines.insert(lines.end(), groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(shown));
  if (shown < groups.size())
    lines.push_back("  and " + std::to_string(groups.size() - shown) + " more kinds; " + kWhereAll);
}

void add_others(std::vector<ReportedTensor> others, Detail detail,
                std::vector<std::string>& lines) {
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return a.tensor->count() > b.tensor->count();
  });
  const std::size_t shown =
      detail == Detail::full ? others.size() : std::min(others.size(), kNamesInBrief);
  const auto rest = others.begin() + static_cast<std::ptrdiff_t>(shown);
  for (auto each = others.begin(); each != rest; ++each) lines.push_back(tensor_line(*each));
  if (rest == others.end()) return;
  const std::vector<ReportedTensor> left(rest, others.end());
  lines.push_back("  and " + std::to_string(left.size()) +
                  " smaller: " + some_of(names_of(left), kNamesInBrief) + "; " + kWhereAll);
}

/// Tensors that do not train but may be weights.
struct Frozen {
  std::vector<ReportedTensor> weights;
  std::vector<ReportedTensor> others;
};

Frozen find_frozen(const std::vector<ReportedTensor>& all, const Uses& uses) {
  Frozen frozen;
  for (const ReportedTensor& each : all) {
    const Role role = each.classified->role;
    const bool may_be =
        role == Role::ambiguous || (role == Role::constant && is_floating(each.tensor->type));
    const auto weight = may_be ? as_weight(each, uses) : std::nullopt;
    if (weight) {
      frozen.weights.push_back(*weight);
    } else if (role == Role::ambiguous) {
      frozen.others.push_back(each);
    }
  }
  return frozen;
}

}  // namespace

std::string tensor_line(const ReportedTensor& reported) {
  const std::string& name = reported.classified->name;
  const std::string& in_file = reported.tensor->name;
  return "  " + name + (in_file == name ? "" : " ('" + in_file + "' in the file)") +
         rest_of_line(reported);
}

std::vector<std::string> grouped_lines(const std::vector<ReportedTensor>& tensors) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> places;  // in `groups`, by the text of the line
  for (const ReportedTensor& each : tensors) {
    const std::string glob = glob_of(each.classified->name);
    const auto [place, is_new] = places.try_emplace(glob + rest_of_line(each), groups.size());
    if (is_new) groups.push_back({glob, &each, 0});
    ++groups[place->second].count;
  }
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    lines.push_back(group.count == 1 ? tensor_line(*group.first)
                                     : "  " + std::to_string(group.count) + " x " + group.glob +
                                           rest_of_line(*group.first));
  }
  return lines;
}

std::vector<std::string> frozen_lines(const std::vector<ReportedTensor>& all, const Uses& uses,
                                      Detail detail) {
  auto [weights, others] = find_frozen(all, uses);
  if (weights.empty() && others.empty()) return {};
  std::vector<std::string> lines = {"frozen, though " +
                                    counted(std::ssize(weights) + std::ssize(others), "tensor") +
                                    " may be weights; model.unfreeze: [name, ..] trains them"};
  add_weights(weights, detail, lines);
  add_others(std::move(others), detail, lines);
  return lines;
}

std::string frozen_note(const std::vector<ReportedTensor>& all, const Uses& uses) {
  auto [weights, others] = find_frozen(all, uses);
  weights.insert(weights.end(), others.begin(), others.end());
  if (weights.empty()) return "";
  return counted(std::ssize(weights), "tensor") +
         " of the model file that may be weights stay as they are: " +
         some_of(names_of(weights), kNamesInBrief) +
         "; --dry-run says why, and model.unfreeze: [name, ..] trains them";
}

}  // namespace decent::onnx
