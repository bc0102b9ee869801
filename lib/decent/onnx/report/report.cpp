#include "decent/onnx/report/report.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "decent/core/text.h"
#include "decent/onnx/classify/inference_norms.h"
#include "decent/onnx/classify/weight_slots.h"
#include "decent/onnx/format/export_advice.h"
#include "decent/onnx/graph/uses.h"
#include "decent/onnx/report/report_tensors.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kOperatorsInBrief = 12;
constexpr std::size_t kNotesInBrief = 4;

std::string and_advice(std::string_view advice) {
  return advice.empty() ? "" : "; " + std::string(advice);
}

// The names in lines such as "p_conv1_weight: PARAMETER target='conv1.weight'", dynamo's list of
// the exported model's tensors.
std::vector<std::string> listed(const Model& file, const std::string& kind) {
  const std::string mark = ": " + kind + " target='";
  const auto signature = file.graph.metadata.find(std::string(kTorchSignature));
  if (signature == file.graph.metadata.end()) return {};
  const std::string& text = signature->second;
  std::vector<std::string> names;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    const std::size_t end = text.find('\'', begin);
    if (end == std::string::npos) break;
    names.push_back(text.substr(begin, end - begin));
  }
  return names;
}

class Reporter {
 public:
  Reporter(const ImportFacts& facts, Detail detail)
      : facts_(facts),
        detail_(detail),
        advice_(export_advice(facts.file)),
        uses_(facts.model.graph) {
    for (std::string& name : listed(facts.file, "PARAMETER")) parameters_.insert(std::move(name));
    collect();
  }

  std::vector<std::string> run() {
    add_source();
    add_operators();
    add_patterns();
    add_tensors(Role::trainable, "trainable");
    add_tensors(Role::buffer, "statistics");
    add_tensors(Role::constant, "constant");
    add_frozen();
    add_shared();
    add_merged();
    add_missing();
    add_lost_state();
    add_folded();
    add_folded_norms();
    add_inference_norms();
    add_dropout();
    add_batch();
    add_nan();
    add_notes();
    return std::move(lines_);
  }

  std::vector<std::string> training_notes() {
    std::string frozen = frozen_note(all_, uses_);
    if (!frozen.empty()) lines_.push_back(std::move(frozen));
    add_folded_norms();
    add_inference_norms();
    if (!trains_norms()) add_dropout();
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

  std::vector<ReportedTensor> of(Role role) const {
    std::vector<ReportedTensor> lines;
    for (const ReportedTensor& line : all_) {
      if (line.classified->role == role) lines.push_back(line);
    }
    return lines;
  }

  void add_source() {
    std::string by =
        facts_.file.producer_name.empty() ? "an unnamed tool" : facts_.file.producer_name;
    if (!facts_.file.producer_version.empty()) by += " " + facts_.file.producer_version;
    lines_.push_back("ONNX: opset " + std::to_string(facts_.file.opset()) + ", written by " + by +
                     "; " + counted(static_cast<std::int64_t>(facts_.translation.nodes), "node") +
                     ", of which " + std::to_string(facts_.translation.folded_nodes) +
                     " are computed once");
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
    const std::vector<ReportedTensor> lines = of(role);
    if (lines.empty()) return;
    std::int64_t total = 0;
    std::map<std::string, std::vector<ReportedTensor>> groups;
    for (const ReportedTensor& line : lines) {
      total += line.tensor->count();
      groups[line.classified->reason].push_back(line);
    }
    lines_.push_back(title + ": " + counted(std::ssize(lines), "tensor") + ", " +
                     count_text(total) + " elements");
    if (detail_ == Detail::full) {
      for (const ReportedTensor& line : lines) lines_.push_back(tensor_line(line));
      return;
    }
    if (role == Role::constant) return add_reasons(groups);
    for (const auto& [reason, group] : groups) add_group(reason, group);
  }

  void add_group(const std::string& reason, const std::vector<ReportedTensor>& group) {
    std::int64_t total = 0;
    std::vector<std::string> names;
    for (const ReportedTensor& line : group) {
      total += line.tensor->count();
      names.push_back(line.classified->name);
    }
    lines_.push_back("  " + reason + ": " + std::to_string(group.size()) + " (" +
                     count_text(total) + "), " + some_of(names, kNamesInBrief));
  }

  void add_reasons(const std::map<std::string, std::vector<ReportedTensor>>& groups) {
    std::vector<std::string> texts;
    for (const auto& [reason, group] : groups)
      texts.push_back(reason + " " + std::to_string(group.size()));
    lines_.back() += ": " + some_of(texts, kNotesInBrief);
  }

  void add_frozen() {
    for (std::string& line : frozen_lines(all_, uses_, detail_)) lines_.push_back(std::move(line));
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
    for (const ReportedTensor& line : of(Role::trainable)) {
      const std::set<std::string> modules = modules_that_read(*line.tensor);
      if (modules.size() < 2) continue;
      texts.push_back(
          "'" + line.classified->name + "' (" +
          some_of(std::vector<std::string>(modules.begin(), modules.end()), most(kNamesInBrief)) +
          ")");
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
    lines_.push_back(counted(std::ssize(own_), "tensor") +
                     " that the export merged with others of equal value, each by itself again: " +
                     some_of(own_, most(kNamesInBrief)));
  }

  void add_missing() {
    std::vector<std::string> missing = missing_parameters(facts_.file);
    std::erase_if(missing, [&](const std::string& name) {
      return std::any_of(all_.begin(), all_.end(),
                         [&](const ReportedTensor& line) { return line.classified->name == name; });
    });
    if (missing.empty()) return;
    lines_.push_back(
        counted(std::ssize(missing), "parameter") +
        " of the exported model not in the file (unused, folded into others or merged): " +
        some_of(missing, most(kNamesInBrief)) + and_advice(advice_.keeps_parameters));
  }

  bool has_statistics(const std::string& name) const {
    return std::any_of(all_.begin(), all_.end(), [&](const ReportedTensor& line) {
      return line.classified->role == Role::buffer && line.classified->name == name;
    });
  }

  // Adds buffers that forward changes in PyTorch. Instance norms do so although the file does not
  // show it.
  void add_lost_state() {
    std::vector<std::string> names = listed(facts_.file, "BUFFER_MUTATION");
    for (std::string& name : listed(facts_.file, "BUFFER")) {
      if (name.ends_with("running_mean") || name.ends_with("running_var"))
        names.push_back(std::move(name));
    }
    std::erase_if(names, [&](const std::string& name) {
      return name.ends_with("num_batches_tracked") || has_statistics(name);
    });
    if (names.empty()) return;
    lines_.push_back(counted(std::ssize(names), "buffer") +
                     " that the exported model changes in training, which the file cannot say: " +
                     some_of(names, most(kNamesInBrief)) + "; a .pt2 file keeps them");
  }

  // In files of PyTorch's exporters, the result of constant folding has a number as its name; a
  // weight into which a batch norm was folded keeps its name but lacks dynamo's mark of parameters.
  bool is_computed(const ReportedTensor& line) const {
    if (advice_.keeps_folded.empty()) return false;
    const bool is_unmarked =
        parameters_.contains(line.tensor->name) && line.classified->reason != kParameterReason;
    return is_unmarked || !is_module_name(line.tensor->name);
  }

  void add_folded() {
    std::vector<std::string> names;
    for (const ReportedTensor& line : of(Role::trainable)) {
      if (is_computed(line) && !holds_norm(line)) names.push_back(line.classified->name);
    }
    if (names.empty()) return;
    lines_.push_back(counted(std::ssize(names), "weight") +
                     " that the export computed (transposed, or with a batch norm folded in): " +
                     some_of(names, most(kNamesInBrief)) + and_advice(advice_.keeps_folded));
  }

  // Exporters fold a batch norm into the convolution before it; tf2onnx gives that weight a special
  // name. After other layers TensorFlow leaves a product and a sum, in the scope of the norm.
  bool holds_norm(const ReportedTensor& line) const {
    const std::string& name = line.tensor->name;
    if (facts_.file.producer_name == "tf2onnx") {
      if (name.ends_with("_fused_bn")) return true;
      const auto& readers = uses_.readers(uses_.of(*line.tensor));
      return !is_variable_of_tensorflow(name) &&
             std::any_of(readers.begin(), readers.end(), [](const Use& use) {
               return use.node != nullptr &&
                      use.node->name.find("/batchnorm/") != std::string::npos;
             });
    }
    return is_computed(line) && line.classified->reason.starts_with("weight of Conv");
  }

  void add_folded_norms() {
    std::vector<std::string> names;
    for (const ReportedTensor& line : of(Role::trainable)) {
      if (holds_norm(line)) names.push_back(line.classified->name);
    }
    if (names.empty()) return;
    lines_.push_back(counted(std::ssize(names), "weight") +
                     " with a batch norm that the export folded in, which train as one with it "
                     "and without the statistics of a batch: " +
                     some_of(names, most(kNamesInBrief)) + and_advice(advice_.keeps_folded));
  }

  // A file with batch norms in training mode was exported after model.train().
  bool trains_norms() const {
    const std::vector<const Node*>& nodes = uses_.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
      const Attribute* mode = node->find("training_mode");
      const auto* value = mode == nullptr ? nullptr : std::get_if<std::int64_t>(&mode->value);
      return value != nullptr && *value != 0;
    });
  }

  void add_inference_norms() {
    const auto norms = std::count_if(all_.begin(), all_.end(), [](const ReportedTensor& line) {
      return line.classified->reason.starts_with(kNormVariance);
    });
    if (norms == 0) return;
    lines_.push_back(counted(norms, "batch norm") +
                     " in inference form: mean and variance stay as they are in the file, and "
                     "training normalizes by them, not by the batch");
  }

  void add_dropout() {
    const auto& operators = facts_.translation.operators;
    if (advice_.keeps_dropout.empty() || operators.count("Dropout") != 0) return;
    lines_.push_back("no Dropout in the file: " + std::string(advice_.keeps_dropout));
  }

  void add_batch() {
    for (const ValueInfo& input : facts_.file.graph.inputs) {
      if (!input.shape || input.shape->empty()) continue;
      if (input.shape->front().value.value_or(0) == 0) continue;
      lines_.push_back("input '" + input.name + "' has a first dimension of " +
                       std::to_string(*input.shape->front().value) +
                       " in the file: where that is the batch, train at that size, or " +
                       std::string(advice_.free_batch));
    }
  }

  void add_nan() {
    const auto found = facts_.translation.operators.find("IsNaN");
    if (found == facts_.translation.operators.end()) return;
    lines_.push_back(counted(static_cast<std::int64_t>(found->second), "IsNaN node") +
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
  const ExportAdvice& advice_;
  Uses uses_;
  std::set<std::string> parameters_;  // of the exported model, by dynamo's list
  std::vector<ReportedTensor> all_;   // in the order of the file
  std::vector<std::string> own_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> missing_parameters(const Model& file) {
  std::set<std::string> there;
  for (const Tensor& tensor : file.graph.initializers) there.insert(tensor.name);
  std::vector<std::string> missing = listed(file, "PARAMETER");
  std::erase_if(missing, [&](const std::string& name) { return there.count(name) != 0; });
  return missing;
}

std::string random_in_evaluation(const Translation& translation) {
  std::vector<std::string> nodes;
  for (const std::string& note : translation.notes) {
    if (note.ends_with(kDrawsInEvaluation))
      nodes.push_back(note.substr(0, note.size() - kDrawsInEvaluation.size() - 1));
  }
  if (nodes.empty()) return "";
  return some_of(nodes, kNotesInBrief) +
         ". The file cannot say that noise is for training alone; a .pt2 package of two programs, "
         "'train' and 'eval', can (docs/models.md)";
}

std::vector<std::string> import_report(const ImportFacts& facts, Detail detail) {
  return Reporter(facts, detail).run();
}

std::vector<std::string> training_notes(const ImportFacts& facts) {
  return Reporter(facts, Detail::brief).training_notes();
}

}  // namespace decent::onnx
