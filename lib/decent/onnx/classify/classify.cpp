#include "decent/onnx/classify/classify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/onnx/classify/inference_norms.h"
#include "decent/onnx/classify/weight_slots.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/graph/uses.h"

namespace decent::onnx {
namespace {

// Weights are smaller; masks hold -inf, -1e9 or the like.
constexpr double kLargestWeight = 1e4;
// Views are followed up to this many values; a weight's use is among the nearest.
constexpr std::size_t kMaxViewedValues = 1000;

/// A tensor under a name of its own: an initializer, or an Identity that renames one.
struct Candidate {
  const Tensor* tensor = nullptr;
  const Node* identity = nullptr;
  std::string name;  // in the file
  ValueId value = 0;
};

/// The nodes that read a tensor, directly or through views.
struct Evidence {
  std::optional<Use> weight;
  std::optional<Use> statistics;
  std::optional<Use> arithmetic;
  std::optional<Use> scaling;
  std::string_view of_norm;  // its role in a batch norm in pieces; see InferenceNorms
  std::set<std::string> functions;
  std::set<std::string> others;
  bool is_read = false;
};

/// A value that contains elements of a tensor.
struct Passed {
  ValueId value = 0;
  bool joined = false;  // to data
};

struct Verdict {
  Role role = Role::constant;
  std::string reason;
};

// Works in parts, so that a large tensor is not converted to doubles as a whole.
template <typename Predicate>
bool all_values(const Tensor& tensor, const Predicate& holds) {
  const std::span<const std::byte> bytes = tensor.elements();
  const std::size_t step = (std::size_t{1} << 16) * onnx::size_of(tensor.type);
  Tensor part;
  part.type = tensor.type;
  for (std::size_t begin = 0; begin < bytes.size(); begin += step) {
    part.bytes = bytes.subspan(begin, std::min(step, bytes.size() - begin));
    const std::vector<double> values = as_doubles(part);
    if (!std::all_of(values.begin(), values.end(), holds)) return false;
  }
  return true;
}

bool has_large_values(const Tensor& tensor) {
  return !all_values(tensor, [](double value) { return std::abs(value) <= kLargestWeight; });
}

bool all_equal(const Tensor& tensor) {
  const std::size_t width = onnx::size_of(tensor.type);
  const std::span<const std::byte> bytes = tensor.elements();
  for (std::size_t i = width; i < bytes.size(); ++i) {
    if (bytes[i] != bytes[i - width]) return false;
  }
  return true;
}

std::size_t dims_above_one(const Tensor& tensor) {
  return static_cast<std::size_t>(
      std::count_if(tensor.dims.begin(), tensor.dims.end(), [](std::int64_t d) { return d > 1; }));
}

// Whether a single number takes the place of a weight, such as a zero for the bias of a layer
// without one.
bool is_single_number(const Candidate& candidate, const Use& use) {
  const Tensor& tensor = *candidate.tensor;
  if (tensor.is_literal) return all_equal(tensor);
  return tensor.dims.empty() && !is_module_name(candidate.name) && use.node->op_type != "PRelu";
}

// Whether a loop's initial state may be learned: otherwise it is zeros.
bool may_be_learned_state(const Tensor& tensor, const Evidence& evidence) {
  const bool begins_loop = evidence.others.count("Loop") != 0 || evidence.others.count("Scan") != 0;
  return begins_loop && tensor.count() > 1 && !all_equal(tensor);
}

/// What a value was in the exported model according to dynamo's exporter: "PARAMETER", "BUFFER", or
/// "".
std::map<std::string, std::string> kinds_of(const Graph& graph) {
  std::map<std::string, std::string> kinds;
  for (const auto* list : {&graph.value_infos, &graph.inputs}) {
    for (const ValueInfo& info : *list) {
      const auto kind = info.metadata.find("pkg.torch.export.graph_signature.InputSpec.kind");
      if (kind != info.metadata.end()) kinds[info.name] = kind->second;
    }
  }
  return kinds;
}

class Classifier {
 public:
  explicit Classifier(const Graph& graph) : uses_(graph), norms_(uses_), kinds_(kinds_of(graph)) {
    for (const Tensor* tensor : uses_.initializers())
      candidates_.push_back({tensor, nullptr, tensor->name, uses_.of(*tensor)});
    for (const Node& node : graph.nodes) add_own(node);
  }

  Classification run(std::span<const std::string> unfreeze);

 private:
  void add_own(const Node& node);
  bool is_own(const Node& node, const Tensor& tensor) const;
  Evidence evidence_of(ValueId value) const;
  void add(const Use& use, bool joined, Evidence& evidence, std::vector<Passed>& reached) const;
  bool joins_data(const Use& use) const;
  bool is_plain_instance_norm(const Use& use, const Tensor& tensor) const;
  Verdict judge(const Candidate& candidate, const Evidence& evidence) const;
  Verdict judge_arithmetic(const Candidate& candidate, const Evidence& evidence) const;
  void name_all(std::vector<Classified>& all) const;
  std::string better_name(const Evidence& evidence) const;
  void unfreeze_all(std::span<const std::string> globs, std::vector<Classified>& all) const;
  std::size_t unfreeze_matches(const std::string& glob, std::vector<Classified>& all) const;
  [[noreturn]] void refuse(const std::string& glob, const std::vector<Classified>& all) const;

  Uses uses_;
  InferenceNorms norms_;
  std::map<std::string, std::string> kinds_;
  std::vector<Candidate> candidates_;
  std::vector<Evidence> evidence_;
  std::set<const Node*> own_;
};

// Outside of training, PyTorch's legacy exporter merges initializers of equal value and replaces
// each that it removes by an Identity under its name. Weights that a model really ties are one
// initializer under one name, which several nodes read. So an Identity under a module's name was a
// parameter of its own. An Identity under a number ("onnx::MatMul_26") is the result of constant
// folding on a weight, either of tied weights or of equal ones. Random weights are equal only if
// they are tied; ones and zeros always are.
bool Classifier::is_own(const Node& node, const Tensor& tensor) const {
  const std::string& name = node.outputs.front();
  if (node.name.rfind("Identity_", 0) != 0 && name.find('.') == std::string::npos) return false;
  return is_module_name(name) || (name.rfind("onnx::", 0) == 0 && all_equal(tensor));
}

void Classifier::add_own(const Node& node) {
  if (node.op_type != "Identity" || !node.domain.empty() || node.opset != 0) return;
  if (node.inputs.size() != 1 || node.outputs.size() != 1) return;
  const Tensor* tensor = uses_.initializer(node, 0);
  if (tensor == nullptr || !is_floating(tensor->type) || !is_own(node, *tensor)) return;
  own_.insert(&node);
  candidates_.push_back({tensor, &node, node.outputs.front(), uses_.outputs(node).front()});
}

// Whether this is a Concat of a tensor with data, whose result is data.
bool Classifier::joins_data(const Use& use) const {
  if (use.node->op_type != "Concat" && use.node->op_type != "SequenceConstruct") return false;
  for (std::size_t i = 0; i < use.node->inputs.size(); ++i) {
    if (i != use.input && uses_.input_varies(*use.node, i)) return true;
  }
  return false;
}

// Nearest first.
Evidence Classifier::evidence_of(ValueId value) const {
  Evidence evidence;
  std::set<ValueId> seen;
  std::vector<Passed> reached = {{value, false}};
  for (std::size_t i = 0; i < reached.size() && i < kMaxViewedValues; ++i) {
    const Passed passed = reached[i];
    if (!seen.insert(passed.value).second) continue;
    for (const Use& use : uses_.readers(passed.value)) add(use, passed.joined, evidence, reached);
    for (const ValueId output : uses_.handed_to(passed.value))
      reached.push_back({output, passed.joined});
  }
  return evidence;
}

void Classifier::add(const Use& use, bool joined, Evidence& evidence,
                     std::vector<Passed>& reached) const {
  if (use.node != nullptr && own_.count(use.node) != 0) return;  // a tensor of its own
  const Slot slot = use.node == nullptr ? Slot::other : slot_of(*use.node, use.input);
  if (const std::string_view role = norms_.role_of(use); !role.empty() && !joined) {
    evidence.is_read = true;
    evidence.of_norm = role;
    return;
  }
  const auto first = [&](std::optional<Use>& place) {
    evidence.is_read = true;
    if (!place) place = use;
  };
  switch (slot) {
    case Slot::weight:
      return first(joined ? evidence.arithmetic : evidence.weight);
    case Slot::statistics:
      return first(evidence.statistics);
    case Slot::arithmetic:
      return first(evidence.arithmetic);
    case Slot::scaling:
      return first(evidence.scaling);
    case Slot::function:
      evidence.is_read = true;
      evidence.functions.insert(use.node->op_type);
      return;
    case Slot::view:
      for (const ValueId output : uses_.outputs(*use.node))
        reached.push_back({output, joined || joins_data(use)});
      return;
    case Slot::shape:
      return;
    case Slot::other:
      evidence.is_read = true;
      evidence.others.insert(use.node == nullptr ? "the graph's output" : use.node->op_type);
  }
}

// GroupNorm before opset 21 is an InstanceNormalization of the groups with ones and zeros, followed
// by a Mul and an Add with the weights.
bool Classifier::is_plain_instance_norm(const Use& use, const Tensor& tensor) const {
  if (use.node->op_type != "InstanceNormalization") return false;
  const double neutral = use.input == 1 ? 1.0 : 0.0;
  return all_values(tensor, [&](double value) { return value == neutral; });
}

Verdict Classifier::judge(const Candidate& candidate, const Evidence& evidence) const {
  const Tensor& tensor = *candidate.tensor;
  if (!is_floating(tensor.type)) return {Role::constant, std::string(name_of(tensor.type))};
  if (!evidence.is_read) return {Role::constant, "no node reads it"};
  if (evidence.statistics) return {Role::buffer, "statistics of BatchNormalization"};
  const auto kind = kinds_.find(candidate.name);
  if (kind != kinds_.end()) {
    if (kind->second == "PARAMETER") return {Role::trainable, std::string(kParameterReason)};
    return {Role::constant, "a buffer of the exported model"};
  }
  if (!evidence.of_norm.empty()) {
    // The eps that is added to the variance.
    if (tensor.count() <= 1) return {Role::constant, "one element"};
    const bool is_merged = evidence.weight || evidence.arithmetic;
    return {evidence.of_norm == kUnderRoot ? Role::ambiguous : Role::constant,
            std::string(evidence.of_norm) +
                (is_merged ? ", and a weight that the export merged with it" : "")};
  }
  if (evidence.weight && is_single_number(candidate, *evidence.weight))
    return {Role::constant, "one number"};
  if (evidence.weight && !is_plain_instance_norm(*evidence.weight, tensor)) {
    return {Role::trainable,
            std::string(member_name(*evidence.weight->node, evidence.weight->input)) + " of " +
                evidence.weight->node->op_type};
  }
  if (evidence.weight) return {Role::constant, "the ones and zeros of a group norm's statistics"};
  return judge_arithmetic(candidate, evidence);
}

Verdict Classifier::judge_arithmetic(const Candidate& candidate, const Evidence& evidence) const {
  const Tensor& tensor = *candidate.tensor;
  // If the exporter marks parameters, a tensor without a mark is none whatever its name: tables
  // that it computed have names such as "embedding_1".
  const bool is_named = kinds_.empty() && (is_module_name(candidate.name) ||
                                           is_variable_of_tensorflow(candidate.name));
  std::set<std::string> read_by = evidence.others;
  if (!is_named) read_by.insert(evidence.functions.begin(), evidence.functions.end());
  const std::vector<std::string> others(read_by.begin(), read_by.end());
  if (!evidence.arithmetic && !evidence.scaling && !is_named)
    return {may_be_learned_state(tensor, evidence) ? Role::ambiguous : Role::constant,
            "read by " + join(others)};
  if (tensor.count() <= 1) {
    return is_named ? Verdict{Role::ambiguous, "one element, named like a parameter"}
                    : Verdict{Role::constant, "one element"};
  }
  if (has_large_values(tensor)) return {Role::constant, "values beyond 1e4, as masks have"};
  if (!others.empty()) {
    return {is_named ? Role::ambiguous : Role::constant, "read by " + join(others)};
  }
  if (!evidence.arithmetic && evidence.functions.empty())
    return {Role::ambiguous, "subtracted or divided by, as statistics of the data are"};
  if (is_named) {
    const std::string use =
        evidence.arithmetic ? "added or multiplied" : "read by " + *evidence.functions.begin();
    return {Role::trainable, use + ", and named like a parameter"};
  }
  if (tensor.is_literal)
    return {Role::ambiguous, "added or multiplied, and no parameter of the exported model"};
  if (dims_above_one(tensor) <= 1)
    return {Role::trainable, "added or multiplied along one dimension"};
  return {Role::ambiguous, "added or multiplied: a weight, or a table that the export made"};
}

std::string Classifier::better_name(const Evidence& evidence) const {
  for (const auto& use :
       {evidence.weight, evidence.statistics, evidence.arithmetic, evidence.scaling}) {
    if (!use) continue;
    const std::string module = module_of(*use->node);
    const std::string_view member = member_name(*use->node, use->input);
    if (!module.empty() && !member.empty()) return module + "." + std::string(member);
  }
  return "";
}

void Classifier::name_all(std::vector<Classified>& all) const {
  TensorNames names;
  const auto is_named = [&](std::size_t i) { return is_module_name(candidates_[i].name); };
  // Tensors of the module choose their names first, and names from a person come before numbers.
  for (const auto& [kept, named] :
       {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_kept(all[i].role) != kept || is_named(i) != named) continue;
      const std::string better = named ? "" : better_name(evidence_[i]);
      if (!better.empty()) all[i].name = names.try_make(better);
      if (all[i].name.empty()) all[i].name = names.make(candidates_[i].name);
    }
  }
}

std::size_t Classifier::unfreeze_matches(const std::string& glob,
                                         std::vector<Classified>& all) const {
  std::size_t matches = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!glob_matches(glob, all[i].name) && !glob_matches(glob, candidates_[i].name)) continue;
    if (all[i].role == Role::trainable) {
      ++matches;
    } else if (is_floating(candidates_[i].tensor->type) && evidence_[i].is_read &&
               all[i].role != Role::buffer) {
      all[i].role = Role::trainable;
      all[i].reason = "model.unfreeze: '" + glob + "'";
      ++matches;
    }
  }
  return matches;
}

void Classifier::refuse(const std::string& glob, const std::vector<Classified>& all) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (glob_matches(glob, all[i].name) || glob_matches(glob, candidates_[i].name)) {
      const bool is_unread = is_floating(candidates_[i].tensor->type) && !evidence_[i].is_read;
      throw UserError("model.unfreeze: '" + glob + "' matches '" + all[i].name +
                      "', which cannot be trained: " +
                      (is_unread ? "no node of the graph reads it" : all[i].reason));
    }
    if (is_floating(candidates_[i].tensor->type) && all[i].role != Role::buffer)
      names.push_back(all[i].name);
  }
  const auto nearest = nearest_name(glob, names);
  throw UserError("model.unfreeze: '" + glob + "' matches no tensor of the model" +
                  (nearest ? "; did you mean '" + *nearest + "'?"
                           : ". --dry-run lists the tensors that it could name"));
}

void Classifier::unfreeze_all(std::span<const std::string> globs,
                              std::vector<Classified>& all) const {
  for (const std::string& glob : globs) {
    if (unfreeze_matches(glob, all) == 0) refuse(glob, all);
  }
}

Classification Classifier::run(std::span<const std::string> unfreeze) {
  std::vector<Classified> all;
  for (const Candidate& candidate : candidates_) {
    evidence_.push_back(evidence_of(candidate.value));
    const Verdict verdict = judge(candidate, evidence_.back());
    all.push_back({verdict.role, "", verdict.reason, candidate.tensor});
  }
  name_all(all);
  unfreeze_all(unfreeze, all);
  Classification result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (candidate.identity == nullptr) {
      result.initializers[candidate.tensor] = all[i];
    } else if (evidence_[i].is_read) {
      result.own[candidate.identity] = all[i];
    }
  }
  return result;
}

}  // namespace

Classification classify(const Graph& graph, std::span<const std::string> unfreeze) {
  return Classifier(graph).run(unfreeze);
}

}  // namespace decent::onnx
