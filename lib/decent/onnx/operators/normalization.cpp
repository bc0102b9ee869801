// Normalization.

#include <algorithm>
#include <cmath>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

constexpr double kUsualEpsilon = 1e-5;

double epsilon(const NodeContext& c) { return c.float_or("epsilon", kUsualEpsilon); }

// Whether it is a tensor of the module that has no gradient, so that training can update it in
// place.
bool is_buffer(const Value& value) {
  return value.dims.has_value() && !value.is_constant() && !value.integers && !value.has_gradient;
}

// Running statistics that do not belong to the module are left as they are.
Expression statistics(NodeContext& c, std::size_t input) {
  if (is_buffer(c.input(input))) return c.tensor(input);
  return method(method(c.tensor(input), "detach"), "clone");
}

void refuse_readers(const NodeContext& c) {
  for (std::size_t output = 1; output < c.node().outputs.size(); ++output) {
    if (c.is_read(output))
      throw Unsupported("hands on its statistics (output " + std::to_string(output) +
                        "), which training updates in place");
  }
}

// ONNX gives the share of the old statistics, PyTorch that of the new ones: 0.9 and 0.1. Rounds,
// because the subtraction gives 0.09999999999999998.
double momentum(const NodeContext& c) {
  constexpr double kRoundingScale = 1e9;
  return std::round((1.0 - c.float_or("momentum", 0.9)) * kRoundingScale) / kRoundingScale;
}

// The trainer decides whether it normalizes by the batch's statistics, as for any PyTorch module;
// training_mode only says how the model was exported.
void batch_normalization(NodeContext& c) {
  refuse_readers(c);
  if (!is_buffer(c.input(3)) || !is_buffer(c.input(4))) {
    c.note(
        "has running statistics that are not tensors of the model: training normalizes by the "
        "batch and leaves them as they are");
  }
  const bool cudnn = false;
  set_like_input(c,
                 call("torch.batch_norm", c.tensor(0), c.tensor(1), c.tensor(2), statistics(c, 3),
                      statistics(c, 4), "self.training", momentum(c), epsilon(c), cudnn));
}

void instance_normalization(NodeContext& c) {
  const bool use_input_stats = true;
  const bool cudnn = false;
  set_like_input(c, call("torch.instance_norm", c.tensor(0), c.tensor(1), c.tensor(2), "None",
                         "None", use_input_stats, 0.1, epsilon(c), cudnn));
}

// How many axes there are from `axis` on, if known.
std::optional<std::size_t> normalized_axes(const NodeContext& c) {
  const std::int64_t axis = axis_of(c.int_or("axis", -1), c.rank(0));
  if (c.rank(0)) return static_cast<std::size_t>(*c.rank(0) - axis);
  return axis < 0 ? std::optional(static_cast<std::size_t>(-axis)) : std::nullopt;
}

// Whether the scale certainly has the normalized shape. A dimension of 1 may be meant to be
// broadcast.
bool scale_has_whole_shape(const NodeContext& c) {
  const auto& dims = c.input(1).dims;
  if (!dims || dims->size() != normalized_axes(c)) return false;
  if (std::find(dims->begin(), dims->end(), 1) != dims->end()) return false;
  return !c.has(2) || c.input(2).dims == dims;
}

std::int64_t axis_of_node(const NodeContext& c) { return axis_of(c.int_or("axis", -1), c.rank(0)); }

// The precision of stage one. PyTorch computes half types in float32 by itself; any other precision
// is refused.
ElementType stash_type(const NodeContext& c) {
  const ElementType stash = c.type_attribute("stash_type", ElementType::float32);
  if (stash != ElementType::float32 && stash != c.type(0))
    throw Unsupported("is to be computed in " + std::string(name_of(stash)) + " (stash_type)");
  return stash;
}

void set_layer_statistics(NodeContext& c, ElementType stash) {
  const std::string mean = c.declare(1, stash, c.rank(0));
  const std::string deviation = c.declare(2, stash, c.rank(0));
  c.assign(std::vector{mean, deviation},
           call(c.helper("_layer_statistics"), method(c.tensor(0), "to", c.dtype(stash)),
                axis_of_node(c), epsilon(c)));
}

void layer_normalization(NodeContext& c) {
  const ElementType stash = stash_type(c);
  const bool direct = scale_has_whole_shape(c);
  const Expression shape = direct ? list(*c.input(1).dims) : axis_of_node(c);
  set_like_input(c, call(direct ? "torch.layer_norm" : c.helper("_layer_norm"), c.tensor(0), shape,
                         c.tensor(1), optional_tensor(c, 2), epsilon(c)));
  if (c.wants(1) || c.wants(2)) set_layer_statistics(c, stash);
}

// The result has the type of the scale.
void rms_normalization(NodeContext& c) {
  stash_type(c);
  const bool same_type = c.type(0) == c.type(1);
  const bool direct = same_type && scale_has_whole_shape(c);
  const Expression shape = direct ? list(*c.input(1).dims) : axis_of_node(c);
  const Expression normalized = call(direct ? "torch.rms_norm" : c.helper("_rms_norm"), c.tensor(0),
                                     shape, c.tensor(1), epsilon(c));
  c.set(0, same_type ? normalized : method(normalized, "to", c.dtype(c.type(1))), c.type(1),
        c.rank(0));
}

Expression group_norm_of(NodeContext& c, const Expression& scale, const Expression& bias) {
  const bool cudnn = false;
  return call("torch.group_norm", c.tensor(0), c.int_or("num_groups", 1), scale, bias, epsilon(c),
              cudnn);
}

void group_normalization(NodeContext& c) {
  stash_type(c);
  set_like_input(c, group_norm_of(c, c.tensor(1), c.tensor(2)));
}

// Before opset 21 there is a scale and a bias for each group.
void group_normalization_by_group(NodeContext& c) {
  const std::string each = c.variable(
      "channels",
      call(c.helper("_quotient"), method(c.tensor(0), "size", 1), c.int_or("num_groups", 1)));
  const auto repeated = [&](std::size_t input) {
    return call("torch.repeat_interleave", c.tensor(input), each);
  };
  set_like_input(c, group_norm_of(c, repeated(1), repeated(2)));
}

void lrn(NodeContext& c) {
  set_like_input(
      c, call(c.helper("_local_response_norm"), c.tensor(0), c.int_or("size", 1),
              c.float_or("alpha", 1e-4), c.float_or("beta", 0.75), c.float_or("bias", 1.0)));
}

// Like torch.nn.functional.normalize, which divides by 1e-12 at least, so that 0 stays 0 and has a
// gradient.
void lp_normalization(NodeContext& c) {
  const Expression x = c.tensor(0);
  const std::int64_t p = c.int_or("p", 2);
  if (p != 1 && p != 2) throw Unsupported("has p " + std::to_string(p) + "; 1 and 2 are");
  const Expression norm = call("torch.linalg_vector_norm", x, p, list(axis_of_node(c)), true);
  set_like_input(c, binary(x, "/", method(norm, "clamp_min", 1e-12)));
}

void mean_variance_normalization(NodeContext& c) {
  const auto axes = c.ints("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
  set_like_input(c, call(c.helper("_mean_variance_norm"), c.tensor(0), list(axes)));
}

constexpr Operator kNormalizationOperators[] = {
    {"BatchNormalization", 9, batch_normalization},
    {"GroupNormalization", 18, group_normalization_by_group, Folding::never, Gradient::flows, 20},
    {"GroupNormalization", 21, group_normalization},
    {"InstanceNormalization", 6, instance_normalization},
    {"LRN", 1, lrn},
    {"LayerNormalization", 17, layer_normalization},
    {"LpNormalization", 1, lp_normalization},
    {"MeanVarianceNormalization", 9, mean_variance_normalization},
    {"RMSNormalization", 23, rms_normalization},
};

}  // namespace

std::span<const Operator> normalization_operators() { return kNormalizationOperators; }

}  // namespace decent::onnx
