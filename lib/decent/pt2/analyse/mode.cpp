#include "decent/pt2/analyse/mode.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/analyse/writes.h"

namespace decent::pt2 {
namespace {

// ---- stochastic depth ------------------------------------------------------------------------

// It drops a block's contribution for some samples, in training only, and can only be recognised
// by its form.

/// Noise that is 1 with probability p, else 0, and is scaled by 1 / p, so that the mean stays.
struct Noise {
  const Node* node = nullptr;              // bernoulli_(p), floor(rand + p)
  const Node* source = nullptr;            // makes the random numbers: `node`, or rand
  double in_evaluation = 1;                // the value of the noise there: nothing is dropped
  std::vector<const Node*> divisors = {};  // divide the other factor by p; in evaluation by 1
};

std::string operator_of(const Node& node) { return parse_target(node.target).operator_name(); }

const std::string* name_in(const Node& node, std::string_view input) {
  const Argument* argument = node.find(input);
  return argument == nullptr ? nullptr : value_name(*argument);
}

std::optional<double> number_in(const Node& node, std::string_view input) {
  const Argument* argument = node.find(input);
  const auto* number = argument == nullptr ? nullptr : std::get_if<double>(argument);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

const std::string* result_of(const Node& node) {
  return node.outputs.empty() ? nullptr : value_name(node.outputs.front());
}

bool is_in_place(const Node& node) {
  const std::string name = parse_target(node.target).name;
  return !name.empty() && name.back() == '_';
}

bool divides_by(const Node& node, double p) {
  const std::string name = operator_of(node);
  return (name == "aten.div" || name == "aten.div_") && number_in(node, "other") == p &&
         node.find("rounding_mode") == nullptr;
}

bool is_random(const std::string& name) { return name == "aten.bernoulli_"; }
bool is_floor(const std::string& name) { return name == "aten.floor" || name == "aten.floor_"; }

class NoiseFinder {
 public:
  explicit NoiseFinder(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (const Argument& result : results_of(node)) {
        if (const std::string* name = value_name(result)) makers_.emplace(*name, &node);
      }
      for (const NamedArgument& input : node.inputs) {
        if (const std::string* name = value_name(input.value)) readers_[*name].push_back(&node);
      }
    }
  }

  std::optional<Noise> noise_of(const Node& node) const {
    auto noise = zeros_and_ones(node);
    if (!noise) return std::nullopt;
    const double p = noise->in_evaluation;
    const std::vector<const Node*> readers = readers_of(node);
    const auto divides = [&](const Node* reader) { return divides_by(*reader, p); };
    const bool is_scaled = std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
      return divides(reader) && is_in_place(*reader);
    });
    if (readers.empty()) return std::nullopt;
    if (is_scaled || std::all_of(readers.begin(), readers.end(), divides)) return noise;
    for (const Node* reader : readers) {
      const Node* divisor = divisor_beside(*reader, node, p);
      if (divisor == nullptr) return std::nullopt;
      noise->divisors.push_back(divisor);
    }
    noise->in_evaluation = 1;
    return noise;
  }

 private:
  // `in_evaluation` is the probability of ones for now.
  std::optional<Noise> zeros_and_ones(const Node& node) const {
    const std::string name = operator_of(node);
    // A file omits p if it has the default value.
    if (is_random(name)) return Noise{&node, &node, number_in(node, "p").value_or(0.5)};
    const Node* sum = is_floor(name) ? maker_of(node, "self") : nullptr;
    if (sum == nullptr || operator_of(*sum) != "aten.add" || sum->find("alpha") != nullptr)
      return std::nullopt;
    const Node* rand = maker_of(*sum, "self");
    const std::optional<double> p = number_in(*sum, "other");
    if (rand == nullptr || operator_of(*rand) != "aten.rand" || !p || *p <= 0 || *p >= 1)
      return std::nullopt;
    return Noise{&node, rand, *p};
  }

  const Node* maker_of(const Node& node, std::string_view input) const {
    const std::string* name = name_in(node, input);
    const auto found = name == nullptr ? makers_.end() : makers_.find(*name);
    return found == makers_.end() ? nullptr : found->second;
  }

  // The readers of a node's result or of the tensor that it wrote into, which is the same value.
  // Empty if there are many: noise has one reader or two, and an untrusted file must not cost the
  // square of its size.
  std::vector<const Node*> readers_of(const Node& node) const {
    constexpr std::size_t kMaxReaders = 16;
    std::vector<const Node*> readers;
    const auto add = [&](const std::string* name) {
      const auto found = name == nullptr ? readers_.end() : readers_.find(*name);
      if (found == readers_.end() || found->second.size() > kMaxReaders) return;
      std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(readers),
                   [&](const Node* reader) { return reader > &node; });  // in the order of a graph
    };
    add(result_of(node));
    if (is_in_place(node)) add(name_in(node, "self"));
    return readers;
  }

  // For a product with the noise: the node that divides the other factor by p, and is read by this
  // product only.
  const Node* divisor_beside(const Node& product, const Node& noise, double p) const {
    const std::string name = operator_of(product);
    if (name != "aten.mul" && name != "aten.mul_") return nullptr;
    for (const char* factor : {"self", "other"}) {
      const Node* made = maker_of(product, factor);
      if (made == nullptr || made == &noise || !divides_by(*made, p)) continue;
      if (readers_of(*made) == std::vector<const Node*>{&product}) return made;
    }
    return nullptr;
  }

  std::map<std::string, const Node*, std::less<>> makers_;
  std::map<std::string, std::vector<const Node*>, std::less<>> readers_;
};

// The noise of one graph, in the form of torchvision and timm (bernoulli_(p), divided by p) and
// that of transformers (x / p, times floor(rand + p)).
std::vector<Noise> find_noise(const Graph& graph) {
  const auto may_be = [](const Node& node) {
    const std::string name = operator_of(node);
    return is_random(name) || is_floor(name);
  };
  std::vector<Noise> all;
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), may_be)) return all;
  const NoiseFinder finder(graph);
  for (const Node& node : graph.nodes) {
    if (!may_be(node)) continue;
    if (auto noise = finder.noise_of(node)) all.push_back(std::move(*noise));
  }
  return all;
}

// ---- the switches ----------------------------------------------------------------------------

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
