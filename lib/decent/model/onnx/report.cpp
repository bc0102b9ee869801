#include "decent/model/onnx/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "decent/core/text.h"
#include "decent/model/onnx/elements.h"
#include "decent/model/onnx/uses.h"
#include "decent/model/onnx/weight_names.h"
#include "decent/model/onnx/weight_slots.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kNamesInBrief = 3;
constexpr std::size_t kOperatorsInBrief = 12;
constexpr std::size_t kNotesInBrief = 4;

constexpr std::string_view kSignature = "pkg.torch.export.ExportedProgram.graph_signature";

/// A tensor as the report names it.
struct Line {
  const Tensor* tensor = nullptr;
  const Classified* classified = nullptr;
};

std::string count_text(std::int64_t count) {
  std::array<char, 32> text{};
  if (count < 10'000) return std::to_string(count);
  const bool is_thousands = count < 1'000'000;
  const double value = static_cast<double>(count) / (is_thousands ? 1e3 : 1e6);
  std::snprintf(text.data(), text.size(), is_thousands ? "%.1fk" : "%.1fM", value);
  return text.data();
}

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string some_of(std::vector<std::string> names, std::size_t most) {
  if (names.size() <= most) return join(names);
  const std::size_t rest = names.size() - most;
  names.resize(most);
  return join(names) + " and " + std::to_string(rest) + " more";
}

// Names in lines such as "p_conv1_weight: PARAMETER target='conv1.weight'", dynamo's list of what
// the exported model had.
std::vector<std::string> listed_parameters(const Model& file) {
  static constexpr std::string_view kMark = "PARAMETER target='";
  const auto signature = file.graph.metadata.find(std::string(kSignature));
  if (signature == file.graph.metadata.end()) return {};
  const std::string& text = signature->second;
  std::vector<std::string> names;
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
    const std::size_t begin = at + kMark.size();
    const std::size_t end = text.find('\'', begin);
    if (end == std::string::npos) break;
    names.push_back(text.substr(begin, end - begin));
  }
  return names;
}

class Reporter {
 public:
  Reporter(const ImportFacts& facts, Detail detail)
      : facts_(facts), detail_(detail), uses_(facts.model.graph) {
    collect();
  }

  std::vector<std::string> run() {
    add_source();
    add_operators();
    add_patterns();
    add_tensors(Role::trainable, "trainable");
    add_tensors(Role::buffer, "statistics");
    add_tensors(Role::constant, "constant");
    add_ambiguous();
    add_shared();
    add_merged();
    add_missing();
    add_folded();
    add_dropout();
    add_batch();
    add_nan();
    add_notes();
    return std::move(lines_);
  }

 private:
  std::size_t most(std::size_t in_brief) const {
    return detail_ == Detail::brief ? in_brief : std::size_t{1} << 30;
  }

  void collect() {
    for (const Tensor* tensor : uses_.initializers()) {
      const auto found = facts_.classification.initializers.find(tensor);
      if (found != facts_.classification.initializers.end())
        all_.push_back({tensor, &found->second});
    }
    for (const Node* node : uses_.nodes()) {
      const auto found = facts_.classification.own.find(node);
      if (found == facts_.classification.own.end()) continue;
      own_.push_back(found->second.name);
      all_.push_back({uses_.initializer(*node, 0), &found->second});
    }
  }

  std::vector<Line> of(Role role) const {
    std::vector<Line> lines;
    for (const Line& line : all_) {
      if (line.classified->role == role) lines.push_back(line);
    }
    return lines;
  }

  void add_source() {
    std::string by =
        facts_.file.producer_name.empty() ? "an unnamed tool" : facts_.file.producer_name;
    if (!facts_.file.producer_version.empty()) by += " " + facts_.file.producer_version;
    lines_.push_back("ONNX: opset " + std::to_string(facts_.file.opset()) + ", written by " + by +
                     "; " + plural(facts_.translation.nodes, "node") + ", of which " +
                     std::to_string(facts_.translation.folded_nodes) + " are computed once");
  }

  void add_operators() {
    std::vector<std::pair<std::string, std::size_t>> operators(facts_.translation.operators.begin(),
                                                               facts_.translation.operators.end());
    std::stable_sort(operators.begin(), operators.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::string> texts;
    for (const auto& [name, count] : operators) texts.push_back(name + " " + std::to_string(count));
    lines_.push_back("operators: " + some_of(texts, most(kOperatorsInBrief)));
  }

  void add_patterns() {
    std::vector<std::string> texts;
    for (const auto& [name, count] : facts_.patterns)
      texts.push_back(name + " " + std::to_string(count));
    if (!texts.empty()) lines_.push_back("recognised: " + join(texts));
  }

  void add_tensors(Role role, const std::string& title) {
    const std::vector<Line> lines = of(role);
    if (lines.empty()) return;
    std::int64_t total = 0;
    std::map<std::string, std::vector<Line>> groups;
    for (const Line& line : lines) {
      total += line.tensor->count();
      groups[line.classified->reason].push_back(line);
    }
    lines_.push_back(title + ": " + plural(lines.size(), "tensor") + ", " + count_text(total) +
                     " elements");
    if (detail_ == Detail::full) return add_each(lines);
    if (role == Role::constant) return add_reasons(groups);
    for (const auto& [reason, group] : groups) add_group(reason, group);
  }

  void add_each(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      const std::string file_name = line.tensor->name == line.classified->name
                                        ? ""
                                        : " ('" + line.tensor->name + "' in the file)";
      lines_.push_back("  " + line.classified->name + file_name + " " +
                       std::string(name_of(line.tensor->type)) + shape_text(line.tensor->dims) +
                       ": " + line.classified->reason);
    }
  }

  void add_group(const std::string& reason, const std::vector<Line>& group) {
    std::int64_t total = 0;
    std::vector<std::string> names;
    for (const Line& line : group) {
      total += line.tensor->count();
      names.push_back(line.classified->name);
    }
    lines_.push_back("  " + reason + ": " + std::to_string(group.size()) + " (" +
                     count_text(total) + "), " + some_of(names, kNamesInBrief));
  }

  void add_reasons(const std::map<std::string, std::vector<Line>>& groups) {
    std::vector<std::string> texts;
    for (const auto& [reason, group] : groups)
      texts.push_back(reason + " " + std::to_string(group.size()));
    lines_.back() += ": " + some_of(texts, kNotesInBrief);
  }

  void add_ambiguous() {
    const std::vector<Line> lines = of(Role::ambiguous);
    if (lines.empty()) return;
    lines_.push_back("frozen, though " + plural(lines.size(), "tensor") +
                     " may be weights; model.unfreeze: [name, ..] trains them");
    const std::size_t shown = std::min(lines.size(), most(kNamesInBrief));
    add_each({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown)});
    if (shown < lines.size())
      lines_.push_back("  and " + std::to_string(lines.size() - shown) + " more");
  }

  std::set<std::string> modules_that_read(const Tensor& tensor) const {
    std::set<std::string> modules;
    for (const Use& use : uses_.readers(uses_.of(tensor))) {
      if (use.node == nullptr || facts_.classification.own.count(use.node) != 0) continue;
      if (slot_of(*use.node, use.input) == Slot::shape) continue;
      const std::string module = place_of(*use.node);
      if (!module.empty()) modules.insert(module);
    }
    return modules;
  }

  // TensorFlow's nodes are named "gru/while/gru_cell/MatMul", or, after a rewriting, "GRU__25".
  std::string place_of(const Node& node) const {
    if (facts_.file.producer_name != "tf2onnx") return module_of(node);
    const std::size_t folder = node.name.rfind('/');
    return folder == std::string::npos ? node.name : node.name.substr(0, folder);
  }

  void add_shared() {
    std::vector<std::string> texts;
    for (const Line& line : of(Role::trainable)) {
      const std::set<std::string> modules = modules_that_read(*line.tensor);
      if (modules.size() < 2) continue;
      texts.push_back("'" + line.classified->name + "' (" +
                      some_of({modules.begin(), modules.end()}, most(kNamesInBrief)) + ")");
    }
    if (!texts.empty()) {
      lines_.push_back(
          "shared by several modules, tied or merged by the export as equal, and trained "
          "as one: " +
          some_of(texts, most(kNamesInBrief)));
    }
  }

  void add_merged() {
    if (own_.empty()) return;
    lines_.push_back(plural(own_.size(), "tensor") +
                     " that the export merged with others of equal value, each by itself again: " +
                     some_of(own_, most(kNamesInBrief)));
  }

  void add_missing() {
    std::vector<std::string> missing = missing_parameters(facts_.file);
    std::erase_if(missing, [&](const std::string& name) {
      return std::any_of(all_.begin(), all_.end(),
                         [&](const Line& line) { return line.classified->name == name; });
    });
    if (missing.empty()) return;
    lines_.push_back(
        plural(missing.size(), "parameter") +
        " of the exported model not in the file (unused, folded into others or merged): " +
        some_of(missing, most(kNamesInBrief)) +
        "; torch.onnx.export(.., optimize=False) keeps them");
  }

  // PyTorch's exporters: what constant folding computed has a number for a name; or, where a batch
  // norm went into the weight before it, the weight's name without dynamo's mark of parameters.
  void add_folded() {
    if (facts_.file.producer_name != "pytorch") return;
    std::vector<std::string> names;
    const std::vector<std::string> listed = listed_parameters(facts_.file);
    const std::set<std::string> parameters(listed.begin(), listed.end());
    for (const Line& line : of(Role::trainable)) {
      const bool is_unmarked =
          parameters.count(line.tensor->name) != 0 && line.classified->reason != kParameterReason;
      if (is_unmarked || !is_module_name(line.tensor->name)) names.push_back(line.classified->name);
    }
    if (names.empty()) return;
    lines_.push_back(plural(names.size(), "weight") +
                     " that the export computed (transposed, or with a batch norm folded in): " +
                     some_of(names, most(kNamesInBrief)) +
                     "; do_constant_folding=False (dynamo: optimize=False) keeps the model's own");
  }

  void add_dropout() {
    const auto& operators = facts_.translation.operators;
    if (facts_.file.producer_name != "pytorch" || operators.count("Dropout") != 0) return;
    lines_.emplace_back(
        "no Dropout in the file: a model that has it loses it unless it is exported after "
        "model.train()");
  }

  void add_batch() {
    for (const ValueInfo& input : facts_.file.graph.inputs) {
      if (!input.shape || input.shape->empty() || !input.shape->front().value) continue;
      lines_.push_back("input '" + input.name + "' has a first dimension of " +
                       std::to_string(*input.shape->front().value) +
                       " in the file: where that is the batch, train at that size, or export with "
                       "dynamic_shapes (dynamic_axes)");
    }
  }

  void add_nan() {
    const auto found = facts_.translation.operators.find("IsNaN");
    if (found == facts_.translation.operators.end()) return;
    lines_.push_back(plural(found->second, "IsNaN node") +
                     ": if it replaces NaN, the gradient behind it can still be NaN");
  }

  void add_notes() {
    const std::vector<std::string>& notes = facts_.translation.notes;
    const std::size_t shown = std::min(notes.size(), most(kNotesInBrief));
    lines_.insert(lines_.end(), notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(shown));
    if (shown < notes.size())
      lines_.push_back("and " + std::to_string(notes.size() - shown) + " more notes of this kind");
  }

  const ImportFacts& facts_;
  Detail detail_;
  Uses uses_;
  std::vector<Line> all_;  // in the order of the file
  std::vector<std::string> own_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> missing_parameters(const Model& file) {
  std::set<std::string> there;
  for (const Tensor& tensor : file.graph.initializers) there.insert(tensor.name);
  std::vector<std::string> missing = listed_parameters(file);
  std::erase_if(missing, [&](const std::string& name) { return there.count(name) != 0; });
  return missing;
}

std::vector<std::string> import_report(const ImportFacts& facts, Detail detail) {
  return Reporter(facts, detail).run();
}

}  // namespace decent::onnx
