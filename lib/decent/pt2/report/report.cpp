#include "decent/pt2/report/report.h"

#include <map>
#include <tuple>
#include <utility>

#include "decent/core/quote.h"
#include "decent/core/text.h"
#include "decent/pt2/analyse/arguments.h"
#include "decent/pt2/analyse/custom_gradients.h"
#include "decent/pt2/report/report_inputs.h"
#include "decent/pt2/report/report_modes.h"
#include "decent/pt2/report/wording.h"

namespace decent::pt2 {
namespace {

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

}  // namespace decent::pt2
