#include "decent/onnx/translate/unknown_operators.h"

#include <algorithm>
#include <array>

#include "decent/core/text.h"
#include "decent/onnx/format/export_advice.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kMaxNamed = 4;

constexpr std::array<std::string_view, 7> kQuantised = {
    "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger",
    "QLinearConv", "QLinearMatMul",    "QuantizeLinear",
};

// Whether it is a quantised operator of onnxruntime's own domain: QGemm, QLinearAdd, MatMulNBits,
// DynamicQuantizeMatMul ..
bool is_quantised_contribution(std::string_view name) {
  const bool begins_with_q = name.size() > 1 && name[0] == 'Q' && name[1] >= 'A' && name[1] <= 'Z';
  constexpr std::array<std::string_view, 5> kParts = {"Quantize", "Integer", "NBits", "Bnb4",
                                                      "FpQ4"};
  return begins_with_q || std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
           return name.find(part) != std::string_view::npos;
         });
}

bool is_of_onnxruntime(std::string_view domain) {
  return domain == "com.microsoft" || domain.starts_with("com.microsoft.") ||
         domain.starts_with("com.ms.");
}

// "nchwc." for com.microsoft.nchwc.
std::string subdomain_of(const std::string& domain) {
  constexpr std::string_view kDomain = "com.microsoft.";
  return domain.starts_with(kDomain) ? domain.substr(kDomain.size()) + "." : "";
}

// onnxruntime's optimizer writes these operators into the standard domain, whatever the opset.
bool is_fused_by_onnxruntime(std::string_view name) {
  return name == "LayerNormalization" || name == "SimplifiedLayerNormalization";
}

std::string text_of_outputs(const Obstacles& obstacles, const OutputsInDoubt& outputs) {
  std::vector<std::string> quoted;
  for (const std::string& name : outputs.impossible) quoted.push_back("'" + name + "'");
  const std::vector<std::string> others(outputs.possible.begin() + 1, outputs.possible.end());
  return "what its output" +
         (quoted.size() == 1 ? " " + quoted[0] + " needs"
                             : "s " + some_of(quoted, kMaxNamed) + " need") +
         " is not supported (" + obstacles.in_brief() + ").\nmodel.output: " + outputs.possible[0] +
         " chooses an output that does without" +
         (others.empty() ? "" : ", as do " + some_of(others, kMaxNamed));
}

// Classical models only subtract, divide by and add their means and deviations.
bool holds_layers(const Classification& classification) {
  return std::any_of(classification.initializers.begin(), classification.initializers.end(),
                     [](const auto& entry) {
                       return entry.second.role == Role::trainable &&
                              entry.second.reason.starts_with("weight of ");
                     });
}

// A line about an operator without translation: its nodes, and the nearest name.
std::string unknown_operator_line(const std::string& name, const std::vector<std::string>& nodes,
                                  std::int64_t opset, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxShownNodes = 3;
  std::string text =
      "operator " + name + " (opset " + std::to_string(opset) + ") is not supported: ";
  for (std::size_t i = 0; i < std::min(kMaxShownNodes, nodes.size()); ++i)
    text += (i == 0 ? "node '" : ", '") + nodes[i] + "'";
  if (nodes.size() > kMaxShownNodes)
    text += " and " + std::to_string(nodes.size() - kMaxShownNodes) + " more";
  const auto nearest = nearest_name(name, known);
  return nearest ? text + "; the nearest that is: " + *nearest : text;
}

std::string full_name(const std::string& domain, const std::string& op_type) {
  return domain.empty() ? op_type : domain + "." + op_type;
}

}  // namespace

UnknownOperators::Kind UnknownOperators::kind_of(const Node& node) {
  const bool is_standard = node.domain.empty();
  if (is_standard &&
      std::find(kQuantised.begin(), kQuantised.end(), node.op_type) != kQuantised.end())
    return Kind::quantised;
  if (is_standard && is_fused_by_onnxruntime(node.op_type)) return Kind::onnxruntime;
  if (is_standard) return Kind::standard;
  if (is_of_onnxruntime(node.domain))
    return is_quantised_contribution(node.op_type) ? Kind::quantised : Kind::onnxruntime;
  return node.domain == "ai.onnx.ml" ? Kind::classical : Kind::custom;
}

void UnknownOperators::add(const Node& node, bool reads_integer_matrix) {
  const Kind kind = kind_of(node);
  nodes_[{kind, node.domain, node.op_type}].push_back(node.name.empty() ? node.outputs.front()
                                                                        : node.name);
  if (kind == Kind::quantised && reads_integer_matrix) has_integer_weights_ = true;
}

std::vector<std::string> UnknownOperators::names() const {
  std::vector<std::string> names;
  for (const auto& [key, nodes] : nodes_) names.push_back(full_name(key.domain, key.op_type));
  std::sort(names.begin(), names.end());
  return names;
}

bool UnknownOperators::has(Kind kind) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const auto& entry) { return entry.first.kind == kind; });
}

bool UnknownOperators::tell_the_kind() const {
  return has(Kind::quantised) || has(Kind::onnxruntime) || has(Kind::classical);
}

std::vector<std::string> UnknownOperators::operators_of(Kind kind) const {
  std::vector<std::string> operators;
  for (const auto& [key, nodes] : nodes_) {
    if (key.kind == kind) operators.push_back(subdomain_of(key.domain) + key.op_type);
  }
  return operators;
}

std::string UnknownOperators::quantised_text() const {
  return "it is quantised (" + some_of(operators_of(Kind::quantised), kMaxNamed) + "): " +
         (has_integer_weights_ ? "its weights are integers, which cannot be trained"
                               : "it rounds to integers, and no gradient passes that") +
         ".\n" + quantised_advice();
}

std::string UnknownOperators::onnxruntime_text() const {
  return "it has onnxruntime's own operators (com.microsoft: " +
         some_of(operators_of(Kind::onnxruntime), kMaxNamed) +
         "), which its optimizer puts in the place of standard ones.\nGive model.path the file "
         "from "
         "before the optimisation, as the exporter wrote it; "
         "SessionOptions.optimized_model_filepath and onnxruntime.transformers write files like "
         "this one";
}

std::string UnknownOperators::classical_text(bool holds_layers) const {
  const std::string operators =
      "(ai.onnx.ml: " + some_of(operators_of(Kind::classical), kMaxNamed) + ")";
  if (!holds_layers) {
    return "it is a model of classical machine learning " + operators +
           ", which has no weights that gradients reach.\nOnly neural networks can be trained: "
           "export one in its place (scikit-learn's MLPClassifier is one)";
  }
  return "besides a neural network it holds operators of classical machine learning " + operators +
         ", which no gradient passes.\nConvert the network by itself, with "
         "options={\"zipmap\": False} where skl2onnx does it, and prepare the data as the steps "
         "before it do";
}

void UnknownOperators::add_custom(const Model& model, std::vector<std::string>& paragraphs) const {
  std::map<std::string, std::vector<std::string>> domains;
  for (const auto& [key, nodes] : nodes_) {
    if (key.kind == Kind::custom) domains[key.domain].push_back(key.op_type);
  }
  if (domains.empty()) return;
  std::vector<std::string> texts;
  for (const auto& [domain, operators] : domains)
    texts.push_back("'" + domain + "' (" + some_of(operators, kMaxNamed) + ")");
  paragraphs.push_back("it needs custom operators of the domain" +
                       std::string(texts.size() == 1 ? " " : "s ") + some_of(texts, kMaxNamed) +
                       "; only standard operators are known, and functions in the file.\n" +
                       capitalised(export_advice(model).no_custom_operators) +
                       ", or add each to the file as a function of standard operators "
                       "(docs/onnx.md, Custom operators)");
}

std::vector<std::string> UnknownOperators::paragraphs(const Model& model, bool holds_layers) const {
  std::vector<std::string> result;
  // A quantised file may also have fused operators; the advice is the same original file.
  if (has(Kind::quantised)) {
    result.push_back(quantised_text());
  } else if (has(Kind::onnxruntime)) {
    result.push_back(onnxruntime_text());
  }
  if (has(Kind::classical)) result.push_back(classical_text(holds_layers));
  add_custom(model, result);
  return result;
}

std::vector<std::string> UnknownOperators::standard_lines(std::int64_t opset) const {
  std::vector<std::string> known;
  for (const Operator& each : operator_table()) known.emplace_back(each.name);
  std::vector<std::string> lines;
  for (const auto& [key, nodes] : nodes_) {
    if (key.kind == Kind::standard)
      lines.push_back(unknown_operator_line(key.op_type, nodes, opset, known));
  }
  return lines;
}

std::string Obstacles::in_brief() const {
  std::vector<std::string> reasons;
  for (const std::string& name : operators.names()) reasons.push_back("operator " + name);
  reasons.insert(reasons.end(), nodes.begin(), nodes.end());
  return some_of(reasons, kMaxNamed);
}

std::string refusal_text(const Model& model, const Classification& classification,
                         const Obstacles& obstacles, const OutputsInDoubt& outputs) {
  const std::string begin = "model '" + model.path.string() + "' cannot be imported";
  if (!outputs.possible.empty())
    return begin + " as a whole: " + text_of_outputs(obstacles, outputs);
  std::vector<std::string> texts =
      obstacles.operators.paragraphs(model, holds_layers(classification));
  const std::string separator = texts.empty() ? "\n" : ": ";
  const std::vector<std::string> lines = obstacles.operators.standard_lines(model.opset());
  texts.insert(texts.end(), lines.begin(), lines.end());
  if (!obstacles.operators.tell_the_kind())
    texts.insert(texts.end(), obstacles.nodes.begin(), obstacles.nodes.end());
  return begin + separator + join(texts, "\n");
}

}  // namespace decent::onnx
