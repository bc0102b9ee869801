#include "decent/pt2/report/report.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/pt2/analyse/custom_gradients.h"
#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/archive/sample_inputs.h"

namespace decent::pt2 {
namespace {

// Advice on how to keep what training needs.
constexpr const char* kExportInTrainMode = "model.train() before torch.export.export";

// How many names a line has; the full report has all.
std::size_t most_names(Detail detail, std::size_t in_brief = 4) {
  return detail == Detail::brief ? in_brief : std::numeric_limits<std::size_t>::max();
}

// "conv2d 20", the most frequent first.
std::vector<std::string> counted_names(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> texts;
  for (const auto& [name, count] : sorted) texts.push_back(name + " " + std::to_string(count));
  return texts;
}

// ---- inputs ----

using Examples = std::optional<std::vector<SampleValue>>;

// The shape of an example; examples are in the order of in_spec, as the user's inputs are.
std::string example_text(const Examples& examples, std::size_t place) {
  if (!examples || place >= examples->size()) return "";
  const auto* tensor = std::get_if<decent::StoredTensor>(&(*examples)[place]);
  return tensor == nullptr ? "" : ", exported with " + shape_text(tensor->shape);
}

// Examples that cannot be read become a line, because training does not need them.
Examples examples_of(const ImportFacts& facts, std::vector<std::string>& lines) {
  try {
    return read_sample_inputs(facts.archive, *facts.programs.train);
  } catch (const UserError& error) {
    lines.push_back(std::string("example inputs are not read: ") + error.what());
    return std::nullopt;
  }
}

bool is_user_input(const InputSpec& input) {
  return std::holds_alternative<UserInput>(input) || std::holds_alternative<ConstantInput>(input);
}

// "input 'x': float32[s77, 3, 32, 32], exported with [2, 3, 32, 32]" for each, with advice if the
// batch is fixed.
std::vector<std::string> input_lines(const ImportFacts& facts) {
  const ExportedProgram& program = *facts.programs.train;
  std::vector<std::string> lines;
  const Examples examples = examples_of(facts, lines);
  std::size_t place = 0;
  for (const InputSpec& input : program.input_specs) {
    if (!is_user_input(input)) continue;
    const std::size_t own = place++;
    const auto* user = std::get_if<UserInput>(&input);
    const auto* tensor = user == nullptr ? nullptr : std::get_if<TensorArgument>(&user->arg);
    if (tensor == nullptr) continue;
    const TensorMeta& meta = program.graph.tensor_values.at(tensor->name);
    lines.push_back("input " + in_quotes(tensor->name) + ": " + std::string(name_of(meta.dtype)) +
                    declared_text(meta) + example_text(examples, own));
    if (meta.sizes.empty() || !meta.sizes.front().value) continue;
    lines.push_back("input " + in_quotes(tensor->name) + " has a first dimension of " +
                    std::to_string(*meta.sizes.front().value) +
                    " in the file: where that is the batch, train at that size, or export with "
                    "dynamic_shapes");
  }
  return lines;
}

// ---- train and eval mode ----

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

// Lines on the mode in which the program was exported, what follows the trainer's mode from now
// on, what stays as it was, and what an export in eval mode has lost.
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

// ---- the whole ----

constexpr std::size_t kOperatorsInBrief = 12;

std::string line_of(const NamedPayload& tensor) {
  return "  " + on_one_line(tensor.name) + " " + std::string(name_of(tensor.payload->dtype)) +
         shape_text(tensor.payload->sizes);
}

/// The properties by which tensors that are not tied differ.
using View = std::tuple<std::string, ScalarType, std::vector<std::int64_t>,
                        std::vector<std::int64_t>, std::int64_t>;

View view_of(const Payload& payload) {
  return {payload.record, payload.dtype, payload.sizes, payload.strides, payload.storage_offset};
}

std::vector<std::string> custom_gradient_lines(const ImportFacts& facts) {
  const std::vector<std::string> names = find_custom_gradients(*facts.programs.train);
  if (names.empty()) return {};
  return {
      "functions with a backward of their own (torch.autograd.Function), which is not in the "
      "file, so that the gradient is that of their forward: " +
      some_of(names, most_names(Detail::brief)) + " (docs/models.md)"};
}

class Reporter {
 public:
  Reporter(const ImportFacts& facts, Detail detail)
      : facts_(facts), detail_(detail), module_(facts.translation.module) {
    for (const NamedPayload& each : module_.parameters)
      first_views_.try_emplace(view_of(*each.payload), &each);
  }

  std::vector<std::string> run() {
    add_source();
    add_operators();
    add_tensors("trainable", parameters(/*trainable=*/true));
    add_tensors("frozen, as requires_grad is False in the file", parameters(/*trainable=*/false));
    add_tensors("buffers", module_.buffers);
    add_constants();
    add_tied();
    add(input_lines(facts_));
    add_left_out();
    add(mode_lines(facts_, detail_));
    add(custom_gradient_lines(facts_));
    if (detail_ == Detail::full) add_text();
    return std::move(lines_);
  }

 private:
  void add(const std::vector<std::string>& lines) {
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }

  void add_source() {
    const ExportedProgram& program = *facts_.programs.train;
    std::size_t nodes = 0;
    for_each_graph(program.graph, [&](const Graph& graph) { nodes += graph.nodes.size(); });
    lines_.push_back("torch.export: schema " + std::to_string(program.schema_version.major) + "." +
                     std::to_string(program.schema_version.minor) + ", written by PyTorch " +
                     on_one_line(program.torch_version) + "; " +
                     counted(static_cast<std::int64_t>(nodes), "node"));
  }

  void add_operators() {
    std::map<std::string, std::size_t> counts;
    for_each_graph(facts_.programs.train->graph, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) ++counts[parse_target(node.target).name];
    });
    lines_.push_back("operators: " +
                     some_of(counted_names(counts), most_names(detail_, kOperatorsInBrief)));
  }

  std::vector<NamedPayload> parameters(bool trainable) const {
    std::vector<NamedPayload> found;
    for (const NamedPayload& each : module_.parameters)
      if (each.payload->requires_grad == trainable) found.push_back(each);
    return found;
  }

  void add_tensors(const std::string& title, const std::vector<NamedPayload>& tensors) {
    if (tensors.empty()) return;
    std::int64_t elements = 0;
    std::vector<std::string> names;
    for (const NamedPayload& each : tensors) {
      const bool is_tied = tied_to(each) != nullptr;
      if (!is_tied) elements += each.payload->count();
      names.push_back(each.name);
    }
    lines_.push_back(title + ": " + counted(std::ssize(tensors), "tensor") + ", " +
                     count_text(elements) + " elements");
    if (detail_ == Detail::brief) {
      lines_.push_back("  " + some_of(names, most_names(detail_)));
    } else {
      for (const NamedPayload& each : tensors) lines_.push_back(line_of(each));
    }
  }

  void add_constants() {
    std::vector<std::string> names;
    for (const auto& [name, payload] : module_.constants)
      names.push_back(on_one_line(name) + " " + std::string(name_of(payload->dtype)) +
                      shape_text(payload->sizes));
    if (!names.empty()) lines_.push_back("constant: " + some_of(names, most_names(detail_)));
  }

  // The first tensor with the same memory, if it is another one.
  const NamedPayload* tied_to(const NamedPayload& tensor) const {
    const auto found = first_views_.find(view_of(*tensor.payload));
    const bool is_own = found == first_views_.end() || found->second->name == tensor.name;
    return is_own ? nullptr : found->second;
  }

  void add_tied() {
    std::vector<std::string> texts;
    for (const NamedPayload& each : module_.parameters) {
      const NamedPayload* first = tied_to(each);
      if (first != nullptr) texts.push_back(in_quotes(each.name) + " to " + in_quotes(first->name));
    }
    if (!texts.empty())
      lines_.push_back("tied, and trained as one: " + some_of(texts, most_names(detail_)));
  }

  void add_left_out() {
    const std::vector<std::string>& names = facts_.translation.left_out;
    if (names.empty()) return;
    lines_.push_back("results that are no tensors and are left out: " +
                     some_of(names, most_names(detail_)));
  }

  void add_text() {
    lines_.emplace_back("the program as TorchScript:");
    std::string_view left = module_.methods;
    while (!left.empty()) {
      const std::size_t end = left.find('\n');
      lines_.push_back("  " + std::string(left.substr(0, end)));
      left = end == std::string_view::npos ? "" : left.substr(end + 1);
    }
  }

  const ImportFacts& facts_;
  const Detail detail_;
  const ModuleSource& module_;
  std::map<View, const NamedPayload*> first_views_;  // of the parameters
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> training_notes(const ImportFacts& facts, bool losses_are_known) {
  std::vector<std::string> lines = custom_gradient_lines(facts);
  const bool is_one = !facts.programs.are_two();
  if (is_one && !losses_are_known && facts.translation.modes.mode == ExportedMode::eval)
    lines.emplace_back(lost_by_eval_mode());
  return lines;
}

std::vector<std::string> import_report(const ImportFacts& facts, Detail detail) {
  return Reporter(facts, detail).run();
}

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

}  // namespace decent::pt2
