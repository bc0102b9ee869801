// LSTM, GRU and RNN: PyTorch's own functions if they mean the same, else step by step.

#include <algorithm>
#include <cctype>

#include "decent/core/script_text.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

struct Activation {
  std::string name;  // lower-case
  double alpha = 0;
  double beta = 0;
};

struct KnownActivation {
  std::string_view name;
  bool has_alpha;
  bool has_beta;
  std::optional<double> alpha;
  std::optional<double> beta;
};

constexpr KnownActivation kActivations[] = {
    {"affine", true, true, 1.0, 0.0},
    {"elu", true, false, 1.0, {}},
    {"hardsigmoid", true, true, 0.2, 0.5},
    {"leakyrelu", true, false, 0.01, {}},
    {"relu", false, false, {}, {}},
    {"scaledtanh", true, true, {}, {}},  // no default in the specification
    {"sigmoid", false, false, {}, {}},
    {"softplus", false, false, {}, {}},
    {"softsign", false, false, {}, {}},
    {"tanh", false, false, {}, {}},
    {"thresholdedrelu", true, false, 1.0, {}},
};

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

const KnownActivation& known_activation(const std::string& name) {
  for (const KnownActivation& each : kActivations) {
    if (each.name == name) return each;
  }
  throw Unsupported("has the activation '" + name + "', which the specification does not know");
}

// The list has values only for the activations that take one, in their order.
double next_parameter(const std::vector<float>& values, std::size_t& next,
                      std::optional<double> otherwise, const std::string& name) {
  if (next < values.size()) return as_written(values[next++]);
  if (!otherwise) throw Unsupported("has the activation '" + name + "' without its alpha or beta");
  return *otherwise;
}

std::vector<std::string> activation_names(NodeContext& c, const std::vector<std::string>& defaults,
                                          std::size_t directions) {
  std::vector<std::string> names;
  if (const Attribute* given = c.node().find("activations")) {
    const auto* list = std::get_if<std::vector<std::string>>(&given->value);
    if (list == nullptr || list->size() != defaults.size() * directions)
      throw Unsupported("needs " + std::to_string(defaults.size()) + " activations a direction");
    for (const std::string& each : *list) names.push_back(lower_case(each));
    return names;
  }
  for (std::size_t i = 0; i < directions; ++i)
    names.insert(names.end(), defaults.begin(), defaults.end());
  return names;
}

std::vector<Activation> activations(NodeContext& c, const std::vector<std::string>& names) {
  const std::vector<float> alphas = c.floats("activation_alpha").value_or(std::vector<float>());
  const std::vector<float> betas = c.floats("activation_beta").value_or(std::vector<float>());
  std::size_t next_alpha = 0;
  std::size_t next_beta = 0;
  std::vector<Activation> all;
  for (const std::string& name : names) {
    const KnownActivation& known = known_activation(name);
    Activation each{name, 0, 0};
    if (known.has_alpha) each.alpha = next_parameter(alphas, next_alpha, known.alpha, name);
    if (known.has_beta) each.beta = next_parameter(betas, next_beta, known.beta, name);
    all.push_back(std::move(each));
  }
  return all;
}

// A node's attributes and inputs, as the helper methods take them.
struct Recurrent {
  bool reverse = false;
  bool batch_first = false;
  std::vector<std::string> names;  // activations of all directions
  bool default_activations = false;
  double clip = 0;
  Arguments tensors;  // x, w, r, b, lengths, h
};

Expression time_first(NodeContext& c, std::size_t input, bool batch_first) {
  const Expression given = optional_tensor(c, input);
  return c.has(input) && batch_first ? method(given, "transpose", 0, 1) : given;
}

Recurrent understand(NodeContext& c, const std::vector<std::string>& defaults) {
  const std::string direction = c.string_or("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    throw Unsupported("has direction '" + direction +
                      "'; the specification has forward, reverse and bidirectional");
  Recurrent node;
  node.reverse = direction == "reverse";
  node.batch_first = c.int_or("layout", 0) != 0;
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  node.names = activation_names(c, defaults, directions);
  node.default_activations = true;
  for (std::size_t i = 0; i < node.names.size(); ++i)
    node.default_activations &= node.names[i] == defaults[i % defaults.size()];
  node.clip = c.float_or("clip", 0);
  node.tensors =
      Arguments(time_first(c, 0, node.batch_first), c.tensor(1), c.tensor(2), optional_tensor(c, 3),
                optional_tensor(c, 4), time_first(c, 5, node.batch_first));
  return node;
}

// "["sigmoid", "tanh"], [0.0, 0.0], [0.0, 0.0], 0.0"
Arguments loop_arguments(NodeContext& c, const Recurrent& node) {
  Arguments names, alphas, betas;
  for (const Activation& each : activations(c, node.names)) {
    names.add(string_literal(each.name));
    alphas.add(each.alpha);
    betas.add(each.beta);
  }
  return Arguments(list(names), list(alphas), list(betas), node.clip);
}

// Sets the outputs from a method that returns the output over time and the last states, in ONNX's
// shapes with time first.
void set_outputs(NodeContext& c, const Recurrent& node, const Expression& outputs,
                 std::size_t states) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= states; ++i)
    names.push_back(c.wants(i) && !node.batch_first ? c.declare(i, c.type(0), i == 0 ? 4 : 3)
                                                    : c.fresh_name(i == 0 ? "over_time" : "last"));
  c.assign(names, outputs);
  if (!node.batch_first) return;
  c.set(0, method(names[0], "permute", list(2, 0, 1, 3)), c.type(0), 4);
  for (std::size_t i = 1; i <= states; ++i)
    c.set(i, method(names[i], "transpose", 0, 1), c.type(0), 3);
}

void lstm(NodeContext& c) {
  const Recurrent node = understand(c, {"sigmoid", "tanh", "tanh"});
  const Arguments inputs(node.tensors, time_first(c, 6, node.batch_first));
  const bool coupled = c.int_or("input_forget", 0) != 0;
  if (node.default_activations && node.clip == 0 && !coupled && !c.has(7))
    return set_outputs(c, node, call(c.helper("_lstm"), inputs, node.reverse), 2);
  set_outputs(c, node,
              call(c.helper("_lstm_loop"), inputs, optional_tensor(c, 7), node.reverse,
                   loop_arguments(c, node), coupled),
              2);
}

void one_state(NodeContext& c, const Recurrent& node, const std::string& function) {
  set_outputs(c, node,
              call(c.helper("_one_state"), string_literal(function), node.tensors, node.reverse),
              1);
}

void gru(NodeContext& c) {
  const Recurrent node = understand(c, {"sigmoid", "tanh"});
  const bool linear_before_reset = c.int_or("linear_before_reset", 0) != 0;
  if (node.default_activations && node.clip == 0 && linear_before_reset)
    return one_state(c, node, "gru");
  set_outputs(c, node,
              call(c.helper("_gru_loop"), node.tensors, node.reverse, linear_before_reset,
                   loop_arguments(c, node)),
              1);
}

void rnn(NodeContext& c) {
  const Recurrent node = understand(c, {"tanh"});
  const bool relu = std::all_of(node.names.begin(), node.names.end(),
                                [](const std::string& name) { return name == "relu"; });
  if (node.clip == 0 && (relu || node.default_activations))
    return one_state(c, node, relu ? "rnn_relu" : "rnn_tanh");
  set_outputs(c, node,
              call(c.helper("_rnn_loop"), node.tensors, node.reverse, loop_arguments(c, node)), 1);
}

constexpr Operator kRecurrentOperators[] = {
    {"GRU", 7, gru},
    {"LSTM", 7, lstm},
    {"RNN", 7, rnn},
};

}  // namespace

std::span<const Operator> recurrent_operators() { return kRecurrentOperators; }

}  // namespace decent::onnx
