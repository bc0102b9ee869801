#include "decent/pt2/report/report_modes.h"

#include <map>
#include <set>

#include "decent/core/text.h"
#include "decent/pt2/analyse/arguments.h"
#include "decent/pt2/analyse/target.h"
#include "decent/pt2/report/wording.h"

namespace decent::pt2 {
namespace {

// The common name of what it switches.
std::string name_of(const ModeSwitch& each) {
  if (each.kind == ModeSwitch::Kind::noise) return "stochastic depth";
  const std::string name = parse_target(each.node->target).name;
  return each.kind == ModeSwitch::Kind::probability ? "dropout of " + name : name;
}

std::string counted_switches(const ModeSurvey& modes, bool follows, Detail detail) {
  std::map<std::string, std::size_t> counts;
  for (const ModeSwitch& each : modes.switches)
    if (each.follows == follows && each.kind != ModeSwitch::Kind::divisor)
      ++counts[name_of(each)];  // a divisor belongs to its noise
  return some_of(counted_names(counts), most_names(detail));
}

// Counts the switches that a flag cannot restore.
std::string counted_lost(const ModeSurvey& modes) {
  std::map<std::string, std::size_t> counts;
  for (const ModeSwitch& each : modes.switches) {
    const bool comes_back = each.kind == ModeSwitch::Kind::flag;
    if (each.follows && !comes_back && each.kind != ModeSwitch::Kind::divisor)
      ++counts[name_of(each)];
  }
  return some_of(counted_names(counts), most_names(Detail::brief));
}

std::vector<std::string> modules_of_frozen(const ModeSurvey& modes) {
  std::vector<std::string> names;
  for (const ModeSwitch& each : modes.switches) {
    const std::string module = each.module.empty() ? module_of(*each.node) : each.module;
    if (!each.follows && !module.empty()) names.push_back(module);
  }
  return names;
}

std::string written_tensors(const BufferWrites& writes, Detail detail) {
  std::set<std::string> names;
  for (const auto& [node, written] : writes) {
    for (const BufferWrite& each : written.tensors) names.insert(each.buffer);
  }
  return some_of(std::vector<std::string>(names.begin(), names.end()), most_names(detail));
}

std::string counted_operators(const std::vector<const Node*>& nodes, Detail detail) {
  std::map<std::string, std::size_t> counts;
  for (const Node* each : nodes) ++counts[parse_target(each->target).name];
  return some_of(counted_names(counts), most_names(detail));
}

void add_train_lines(const ModeSurvey& modes, Detail detail, std::vector<std::string>& lines) {
  lines.push_back("exported in train mode; these follow the trainer's mode: " +
                  counted_switches(modes, /*follows=*/true, detail));
  const std::string frozen = counted_switches(modes, /*follows=*/false, detail);
  if (frozen.empty()) return;
  const std::string where = some_of(modules_of_frozen(modes), most_names(detail));
  lines.push_back("these were in eval mode when the rest was in train mode, and stay so: " +
                  frozen + (where.empty() ? "" : " (" + where + ")"));
}

void add_eval_lines(const ModeSurvey& modes, Detail detail, std::vector<std::string>& lines) {
  lines.push_back("exported in eval mode; these are on in training all the same: " +
                  counted_switches(modes, /*follows=*/true, detail));
  lines.push_back(lost_by_eval_mode());
}

}  // namespace

std::string random_in_evaluation(const Translation& translation) {
  if (translation.random.empty()) return "";
  return counted_operators(translation.random, Detail::brief) +
         ". One program cannot say that noise is for training alone; a package of two, 'train' and "
         "'eval', can (docs/models.md)";
}

std::string lost_for_inference(const Translation& translation) {
  const ModeSurvey& modes = translation.modes;
  if (modes.mode == ExportedMode::eval) return "";
  std::vector<std::string> parts;
  const auto add = [&parts](const char* what, const std::string& which) {
    if (!which.empty()) parts.push_back(what + which);
  };
  add("off: ", counted_lost(modes));
  add("no longer written by forward: ", written_tensors(translation.writes, Detail::brief));
  if (modes.mode == ExportedMode::train)
    add("no longer frozen in eval mode: ",
        counted_switches(modes, /*follows=*/false, Detail::brief));
  return join(parts, "; ");
}

std::string lost_by_eval_mode() {
  return std::string(
             "an export in eval mode has lost what runs in training alone: dropout of "
             "scaled_dot_product_attention, stochastic depth, counters of batches "
             "(num_batches_tracked); ") +
         kExportInTrainMode + " keeps them";
}

std::vector<std::string> mode_lines(const ImportFacts& facts, Detail detail) {
  const Translation& translation = facts.translation;
  if (facts.programs.are_two())
    return {"two programs: 'train' runs in training and 'eval' in evaluation, each as it is"};
  std::vector<std::string> lines;
  if (translation.modes.mode == ExportedMode::train)
    add_train_lines(translation.modes, detail, lines);
  if (translation.modes.mode == ExportedMode::eval)
    add_eval_lines(translation.modes, detail, lines);
  if (translation.modes.mode == ExportedMode::unknown) {
    lines.push_back(std::string("nothing in the program tells train from eval mode: a model that "
                                "has dropout loses it unless it is exported in train mode, by ") +
                    kExportInTrainMode);
  }
  const bool is_always = translation.modes.mode == ExportedMode::eval;
  if (!translation.writes.empty())
    lines.push_back("buffers and parameters that forward writes, in " +
                    std::string(is_always ? "both modes: " : "training alone: ") +
                    written_tensors(translation.writes, detail));
  if (const std::string random = random_in_evaluation(translation); !random.empty())
    lines.push_back("random in evaluation, too: " + random);
  return lines;
}

}  // namespace decent::pt2
