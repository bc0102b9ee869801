#include "decent/pt2/analyse/mode.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/analyse/noise.h"
#include "decent/pt2/analyse/writes.h"

namespace decent::pt2 {
namespace {

using SwitchKind = ModeSwitch::Kind;

// Names of buffers, by their values in the graph.
ByName<std::string> buffers_of(const ExportedProgram& program) {
  ByName<std::string> buffers;
  for (const InputSpec& input : program.input_specs) {
    if (const auto* buffer = std::get_if<BufferInput>(&input))
      buffers.emplace(buffer->arg, buffer->buffer_name);
  }
  return buffers;
}

constexpr std::string_view kDropoutOfAttention = "dropout_p";

bool is_mode_flag(const Target& target, std::string_view argument) {
  return argument == "train" || argument == "training" ||
         (target.name == "instance_norm" && argument == "use_input_stats");
}

class Survey {
 public:
  explicit Survey(const ExportedProgram& program) : buffers_(buffers_of(program)) {
    for_each_graph(program.graph, [this](const Graph& graph) {
      for (const Noise& noise : find_noise(graph)) add_noise(noise);
      for (const Node& node : graph.nodes) add_node(node);
    });
  }

  ModeSurvey take() { return std::move(survey_); }

 private:
  void add_noise(const Noise& noise) {
    survey_.noise_sources.insert(noise.source);
    add({.node = noise.node,
         .kind = SwitchKind::noise,
         .in_evaluation = noise.in_evaluation,
         .is_on = true});
    for (const Node* divisor : noise.divisors)
      add({.node = divisor, .kind = SwitchKind::divisor, .argument = "other", .is_on = true});
  }

  void add_node(const Node& node) {
    const Target target = parse_target(node.target);
    if (!target.is_aten()) return;
    for (const NamedArgument& input : node.inputs) add_argument(node, target, input);
  }

  void add_argument(const Node& node, const Target& target, const NamedArgument& input) {
    const auto* flag = std::get_if<bool>(&input.value);
    if (flag != nullptr && is_mode_flag(target, input.name)) return add_flag(node, input, *flag);
    const auto* probability = std::get_if<double>(&input.value);
    if (probability != nullptr && *probability > 0 && input.name == kDropoutOfAttention) {
      add({.node = &node, .kind = SwitchKind::probability, .argument = input.name, .is_on = true});
    }
  }

  // A norm without running statistics uses the batch's in either mode.
  void add_flag(const Node& node, const NamedArgument& input, bool is_on) {
    const Argument* statistics = node.find("running_mean");
    const std::string* name = statistics == nullptr ? nullptr : value_name(*statistics);
    if (statistics != nullptr && name == nullptr) return;
    add({.node = &node,
         .argument = input.name,
         .is_on = is_on,
         .module = name == nullptr ? "" : owner_of(*name)});
  }

  std::string owner_of(const std::string& statistics) const {
    const auto buffer = buffers_.find(statistics);
    return buffer == buffers_.end() ? "" : module_of_buffer(buffer->second);
  }

  void add(ModeSwitch found) { survey_.switches.push_back(std::move(found)); }

  const ByName<std::string> buffers_;
  ModeSurvey survey_;
};

ExportedMode mode_of(const std::vector<ModeSwitch>& switches) {
  if (switches.empty()) return ExportedMode::unknown;
  const bool any = std::any_of(switches.begin(), switches.end(),
                               [](const ModeSwitch& each) { return each.is_on; });
  return any ? ExportedMode::train : ExportedMode::eval;
}

bool has_mode(const OperatorSchema& schema, const Target& target) {
  return std::any_of(schema.arguments.begin(), schema.arguments.end(), [&](const auto& each) {
    return is_mode_flag(target, each.name) || each.name == kDropoutOfAttention;
  });
}

}  // namespace

std::vector<const Node*> find_random(const ExportedProgram& program, const ModeSurvey& survey,
                                     const OperatorSchemas& schemas) {
  std::vector<const Node*> random;
  for_each_graph(program.graph, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      const Target target = parse_target(node.target);
      const OperatorSchema* schema = target.is_aten() ? schemas.find(target) : nullptr;
      if (schema == nullptr || !schema->is_random || has_mode(*schema, target)) continue;
      if (survey.noise_sources.count(&node) == 0) random.push_back(&node);
    }
  });
  return random;
}

const ModeSwitch* ModeSurvey::following(const Node& node) const {
  const auto place = places.find(&node);
  return place == places.end() ? nullptr : &switches[place->second];
}

ModeSurvey survey_fixed_modes(const ExportedProgram& program) {
  ModeSurvey survey = Survey(program).take();
  survey.mode = mode_of(survey.switches);
  return survey;
}

ModeSurvey survey_modes(const ExportedProgram& program) {
  ModeSurvey survey = survey_fixed_modes(program);
  for (std::size_t i = 0; i < survey.switches.size(); ++i) {
    ModeSwitch& each = survey.switches[i];
    each.follows = each.is_on || survey.mode == ExportedMode::eval;
    if (each.follows) survey.places.emplace(each.node, i);
  }
  return survey;
}

}  // namespace decent::pt2
