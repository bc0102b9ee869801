// Resize and Upsample: PyTorch's own functions if they mean the same, else by positions and
// weights.

#include <algorithm>
#include <cmath>

#include "decent/core/script_text.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// A node's attributes and inputs.
struct Resize {
  std::string mode = "nearest";
  std::string transform = "half_pixel";
  std::string rounding = "round_prefer_floor";
  std::string policy = "stretch";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double outside = 0;
  std::size_t region_input = 1;
  std::size_t scales_input = 2;
  std::size_t sizes_input = 3;

  std::optional<std::int64_t> rank;
  std::vector<std::int64_t> axes;  // of the input, >= 0, to which scales and sizes apply
  // One of these two, by axis in `axes`.
  std::optional<std::vector<double>> scales;
  std::optional<std::vector<Integer>> sizes;
};

// Whether an optional input is given; old files have an empty tensor in its place.
bool is_given(NodeContext& c, std::size_t input) {
  if (!c.has(input)) return false;
  const auto& dims = c.input(input).dims;
  return !dims || std::find(dims->begin(), dims->end(), 0) == dims->end();
}

std::optional<std::vector<double>> known_scales(NodeContext& c, std::size_t input) {
  const Value& value = c.input(input);
  if (!value.is_constant()) return std::nullopt;
  std::vector<double> scales = as_doubles(*value.constant);
  for (double& scale : scales) {
    if (!(scale > 0)) throw Unsupported("has a scale that is not positive");
    scale = as_written(static_cast<float>(scale));  // 0.7 * 10 is 7
  }
  return scales;
}

std::vector<std::int64_t> all_axes(std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void find_axes(NodeContext& c, Resize& node) {
  const std::size_t count = node.scales ? node.scales->size() : node.sizes ? node.sizes->size() : 0;
  const auto given = c.ints("axes");
  node.rank = c.rank(0);
  if (!node.rank && !given && count != 0) node.rank = static_cast<std::int64_t>(count);
  if (!node.rank) throw Unsupported("has an input of unknown rank");
  node.axes = given ? *given : all_axes(static_cast<std::size_t>(*node.rank));
  for (std::int64_t& axis : node.axes) {
    if (axis < 0) axis += *node.rank;
    if (axis < 0 || axis >= *node.rank) throw Unsupported("has an axis that its input lacks");
  }
  if (count != 0 && count != node.axes.size())
    throw Unsupported("has " + std::to_string(count) + " scales or sizes for " +
                      std::to_string(node.axes.size()) + " axes");
}

std::string one_of(NodeContext& c, std::string_view attribute, const std::string& otherwise,
                   std::initializer_list<std::string_view> known) {
  const std::string value = c.string_or(attribute, otherwise);
  if (std::find(known.begin(), known.end(), value) == known.end())
    throw Unsupported("has " + std::string(attribute) + " '" + value +
                      "', which the specification does not know");
  return value;
}

void read_attributes(NodeContext& c, Resize& node) {
  node.mode = one_of(c, "mode", "nearest", {"nearest", "linear", "cubic"});
  node.transform =
      one_of(c, "coordinate_transformation_mode", "half_pixel",
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
              "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  node.rounding = one_of(c, "nearest_mode", "round_prefer_floor",
                         {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  node.policy =
      one_of(c, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
  node.cubic_a = c.float_or("cubic_coeff_a", -0.75);
  node.exclude_outside = c.int_or("exclude_outside", 0) != 0;
  node.antialias = c.int_or("antialias", 0) != 0;
  node.outside = c.float_or("extrapolation_value", 0);
  if (node.antialias && node.mode == "nearest")
    throw Unsupported("smooths (antialias) in mode nearest, which the specification does not have");
}

// Lists and sizes.

Expression float_list(const std::vector<double>& values) {
  Arguments elements;
  for (const double value : values) elements.add(value);
  return list(elements);
}

Expression float_list(NodeContext& c, std::size_t input) {
  if (c.input(input).is_constant()) return float_list(as_doubles(*c.input(input).constant));
  const std::string name = c.fresh_name("factors");
  c.assign(name + ": List[float]", method(c.tensor(input), "tolist"));
  return name;
}

Expression size_of_axis(const Expression& x, std::int64_t axis) { return method(x, "size", axis); }

// PyTorch's functions, which do not change the batch and the channels.

bool is_grid_multiple(const Resize& node) {
  return node.scales && std::all_of(node.scales->begin(), node.scales->end(),
                                    [](double scale) { return scale == std::trunc(scale); });
}

bool is_half_pixel(const Resize& node) {
  return node.transform == "half_pixel" || node.transform == "pytorch_half_pixel";
}

/// "torch.upsample_bilinear2d"; empty if no function means the same.
std::string torch_function(const Resize& node) {
  const std::int64_t spatial = *node.rank - 2;
  if (spatial < 1 || spatial > 3 || node.antialias || node.policy != "stretch") return "";
  const std::string dimensions = std::to_string(spatial) + "d";
  if (node.mode == "nearest") {
    if (node.transform == "asymmetric" && node.rounding == "floor")
      return "torch.upsample_nearest" + dimensions;
    // The two round ties differently; multiples have no ties.
    if (node.transform == "half_pixel" &&
        (node.rounding == "round_prefer_ceil" ||
         (node.rounding == "round_prefer_floor" && is_grid_multiple(node)))) {
      return "torch._upsample_nearest_exact" + dimensions;
    }
    return "";
  }
  if (node.exclude_outside || !(is_half_pixel(node) || node.transform == "align_corners"))
    return "";
  if (node.mode == "cubic")
    return spatial == 2 && node.cubic_a == -0.75 ? "torch.upsample_bicubic2d" : "";
  constexpr const char* kLinear[] = {"torch.upsample_linear", "torch.upsample_bilinear",
                                     "torch.upsample_trilinear"};
  return kLinear[spatial - 1] + dimensions;
}

// A call of one of PyTorch's functions and what must hold for it to mean the same.
struct TorchCall {
  Expression resized;
  std::vector<Expression> conditions;  // conditions that are only known when the model runs
};

// If the result has one element, pytorch_half_pixel takes the first of the input, but PyTorch
// itself takes the middle. They agree if nothing gets smaller.
void need_more_than_one(const Resize& node, std::vector<Expression>& conditions,
                        const Expression& size) {
  if (node.transform == "pytorch_half_pixel" && node.mode != "nearest")
    conditions.push_back(binary(size, ">", 1));
}

// Whether the scales keep the sizes of batch and channels.
bool scales_only_space(const Resize& node) {
  for (std::size_t i = 0; i < node.axes.size(); ++i)
    if (node.axes[i] < 2 && (*node.scales)[i] != 1) return false;
  return true;
}

Expression factors_of(const Resize& node, const Expression& x,
                      std::vector<Expression>& conditions) {
  std::vector<double> factors(static_cast<std::size_t>(*node.rank - 2), 1.0);
  for (std::size_t i = 0; i < node.axes.size(); ++i) {
    if (node.axes[i] < 2) continue;
    const double scale = (*node.scales)[i];
    factors[static_cast<std::size_t>(node.axes[i] - 2)] = scale;
    if (scale >= 1) continue;
    const Expression size = call("int", binary(size_of_axis(x, node.axes[i]), "*", scale));
    need_more_than_one(node, conditions, size);
  }
  return float_list(factors);
}

Expression sizes_of(const Resize& node, const Expression& x, std::vector<Expression>& conditions) {
  std::vector<Integer> sizes;
  for (std::int64_t axis = 2; axis < *node.rank; ++axis)
    sizes.push_back(Integer::size(size_of_axis(x, axis)));
  for (std::size_t i = 0; i < node.axes.size(); ++i) {
    const Integer& size = (*node.sizes)[i];
    const Expression same = size_of_axis(x, node.axes[i]);
    if (node.axes[i] >= 2) {
      sizes[static_cast<std::size_t>(node.axes[i] - 2)] = size;
      if (size.known.value_or(1) <= 1 && size.text() != same.text())
        need_more_than_one(node, conditions, size);
    } else if (size.text() != same.text()) {
      conditions.push_back(binary(size, "==", same));
    }
  }
  return list(sizes);
}

// The argument of PyTorch's functions between the sizes and the factors.
Arguments corners_of(const Resize& node) {
  if (node.mode == "nearest") return Arguments();
  return Arguments(node.transform == "align_corners");
}

std::optional<TorchCall> torch_call(NodeContext& c, const Resize& node) {
  const std::string function = torch_function(node);
  if (function.empty() || !is_floating(c.type(0))) return std::nullopt;
  const Expression x = c.tensor(0);
  std::vector<Expression> conditions;
  if (node.scales && scales_only_space(node)) {
    const Expression factors = factors_of(node, x, conditions);
    return TorchCall{call(function, x, "None", corners_of(node), factors), conditions};
  }
  if (node.scales || !node.sizes) return std::nullopt;
  const Expression sizes = sizes_of(node, x, conditions);
  return TorchCall{call(function, x, sizes, corners_of(node), "None"), conditions};
}

// By positions and weights.

struct Targets {
  Expression sizes;
  Expression scales;
};

Targets targets(NodeContext& c, const Resize& node, const Expression& axes,
                const Expression& region) {
  const std::string x = c.tensor(0);
  if (node.scales || !is_given(c, node.sizes_input)) {
    const Expression scales =
        node.scales ? float_list(*node.scales) : float_list(c, node.scales_input);
    return {call(c.helper("_resize_sizes"), x, axes, scales, region), scales};
  }
  const std::string sizes = c.int_list(node.sizes_input);
  if (node.policy == "stretch") return {sizes, call(c.helper("_resize_scales"), x, axes, sizes)};
  const std::vector<std::string> kept{c.fresh_name("sizes"), c.fresh_name("scales")};
  const bool smaller = node.policy == "not_larger";
  c.assign(kept, call(c.helper("_resize_keeping_aspect"), x, axes, sizes, smaller));
  return {kept[0], kept[1]};
}

Expression general_call(NodeContext& c, const Resize& node) {
  if (!is_floating(c.type(0)) && node.mode != "nearest")
    throw Unsupported("interpolates " + name_of(c.type(0)) + " elements");
  const bool crops = node.transform == "tf_crop_and_resize";
  if (crops && !is_given(c, node.region_input)) throw Unsupported("crops without its input 'roi'");
  const Expression region = crops ? float_list(c, node.region_input) : empty_list("float");
  const Expression axes = list(node.axes);
  const Targets to = targets(c, node, axes, region);
  return call(c.helper("_resize"), c.tensor(0), axes, to.sizes, to.scales, region,
              string_literal(node.mode), string_literal(node.transform),
              string_literal(node.rounding), node.cubic_a, node.exclude_outside, node.antialias,
              node.outside);
}

// PyTorch's function if it means the same.
Expression resized(NodeContext& c, const Resize& node) {
  const auto torch = torch_call(c, node);
  if (!torch) return general_call(c, node);
  if (torch->conditions.empty()) return torch->resized;
  Expression all = torch->conditions.front();
  for (std::size_t i = 1; i < torch->conditions.size(); ++i)
    all = binary(all, "and", torch->conditions[i]);
  return conditional(torch->resized, all, general_call(c, node));
}

void set_resized(NodeContext& c, Resize& node) {
  if (is_given(c, node.scales_input) && is_given(c, node.sizes_input))
    throw Unsupported("has both scales and sizes");
  if (is_given(c, node.scales_input)) {
    node.scales = known_scales(c, node.scales_input);
  } else if (is_given(c, node.sizes_input)) {
    node.sizes = c.integers(node.sizes_input);
  } else {
    throw Unsupported("has neither scales nor sizes");
  }
  find_axes(c, node);
  c.set(0, resized(c, node), c.type(0), node.rank);
}

void resize(NodeContext& c) {
  Resize node;
  read_attributes(c, node);
  set_resized(c, node);
}

constexpr std::size_t kNoInput = 9;

// Upsample, and Resize in the versions that only have scales.
void resize_by_scales(NodeContext& c) {
  Resize node;
  node.mode = one_of(c, "mode", "nearest", {"nearest", "linear"});
  node.transform = "asymmetric";
  node.rounding = "floor";
  node.scales_input = 1;
  node.region_input = node.sizes_input = kNoInput;
  set_resized(c, node);
}

constexpr Operator kResizeOperators[] = {
    {"Resize", 10, resize_by_scales, Folding::never, Gradient::flows, 10},
    {"Resize", 11, resize},
    {"Upsample", 9, resize_by_scales, Folding::never, Gradient::flows, 9},
};

}  // namespace

std::span<const Operator> resize_operators() { return kResizeOperators; }

}  // namespace decent::onnx
