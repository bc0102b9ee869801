// Pooling over windows, over all spatial axes, and back.

#include "decent/onnx/graph/names.h"
#include "decent/onnx/translate/expressions.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/window.h"

namespace decent::onnx {
namespace {

bool has_dilation(const Window& window) {
  return window.dilations != std::vector<std::int64_t>(window.axes, 1);
}

std::int64_t rank_of(const Window& window) { return static_cast<std::int64_t>(window.axes) + 2; }

// "x, [3, 3], [2, 2], [1, 1], [0, 0, 0, 0], False": what helpers about windows begin with.
std::string window_arguments(NodeContext& c, const Window& window) {
  const std::string kernel = kernel_text(c, window, std::nullopt);
  return comma_separated({c.tensor(0), kernel, list_text(window.strides),
                          list_text(window.dilations), padding_text(c, window, kernel),
                          bool_text(window.ceil_mode)});
}

void average_pool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const std::string counts_padding = bool_text(c.int_or("count_include_pad", 0) != 0);
  if (window.suits_pooling() && !has_dilation(window)) {
    const std::vector<std::string> arguments = {c.tensor(0),
                                                list_text(*window.kernel),
                                                list_text(window.strides),
                                                list_text(window.begins),
                                                bool_text(window.ceil_mode),
                                                counts_padding};
    return c.set(
        0, function_of_axes(window, "torch.avg_pool") + "(" + comma_separated(arguments) + ")",
        c.type(0), rank_of(window));
  }
  c.set(0,
        c.helper("_average_windows") + "(" + window_arguments(c, window) + ", " + counts_padding +
            ")",
        c.type(0), rank_of(window));
}

void lp_pool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const double p = static_cast<double>(c.int_or("p", 2));
  c.set(0, c.helper("_lp_pool") + "(" + window_arguments(c, window) + ", " + literal(p) + ")",
        c.type(0), rank_of(window));
}

// What no element of a window is below.
std::string lowest(ElementType type) {
  if (is_floating(type)) return "float(\"-inf\")";
  return type == ElementType::int8 ? "-128" : "0";
}

// The input, padded unless PyTorch's own function can do that.
struct PoolInput {
  std::string x;
  std::string padding;  // what x is padded by, as constant_pad_nd takes it
  std::vector<std::int64_t> built_in;
  bool ceil_mode = false;
};

PoolInput max_pool_input(NodeContext& c, const Window& window) {
  const std::vector<std::int64_t> none(window.axes, 0);
  if (window.suits_pooling())
    return {c.tensor(0), list_text(std::vector<std::int64_t>(2 * window.axes, 0)), window.begins,
            window.ceil_mode};
  const std::string padding =
      c.variable("padding", c.helper("_window_padding") + "(" + window_arguments(c, window) + ")");
  return {"torch.constant_pad_nd(" + c.tensor(0) + ", " + padding + ", " + lowest(c.type(0)) + ")",
          padding, none, false};
}

void max_pool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const PoolInput input = max_pool_input(c, window);
  const std::string arguments = comma_separated(
      {input.x, list_text(*window.kernel), list_text(window.strides), list_text(input.built_in),
       list_text(window.dilations), bool_text(input.ceil_mode)});
  const std::string function = function_of_axes(window, "torch.max_pool");
  // PyTorch's one-dimensional function without indices knows no integers.
  const bool one_output = !c.wants(1) && (window.axes > 1 || is_floating(c.type(0)));
  if (one_output) return c.set(0, function + "(" + arguments + ")", c.type(0), rank_of(window));
  const std::string indices = c.fresh_name("indices");
  c.line(c.declare(0, c.type(0), rank_of(window)) + ", " + indices + " = " + function +
         "_with_indices(" + arguments + ")");
  c.set(1,
        c.helper("_flat_indices") + "(" + indices + ", " + c.tensor(0) + ", " + input.padding +
            ", " + bool_text(c.int_or("storage_order", 0) != 0) + ")",
        ElementType::int64, rank_of(window));
}

void max_unpool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const std::string size = c.has(2) ? c.int_list(2) : "annotate(List[int], [])";
  const std::string kernel = kernel_text(c, window, std::nullopt);
  const std::vector<std::string> arguments = {
      c.tensor(0), c.tensor(1), kernel, list_text(window.strides), padding_text(c, window, kernel),
      size};
  c.set(0, c.helper("_max_unpool") + "(" + comma_separated(arguments) + ")", c.type(0),
        rank_of(window));
}

std::optional<std::int64_t> spatial_axes(const NodeContext& c) {
  if (!c.rank(0) || *c.rank(0) < 3 || *c.rank(0) > 5) return std::nullopt;
  return *c.rank(0) - 2;
}

std::string ones(std::int64_t count) {
  return list_text(std::vector<std::int64_t>(static_cast<std::size_t>(count), 1));
}

// What exporters write for adaptive pooling to one element.
void global_average_pool(NodeContext& c) {
  const std::string x = c.tensor(0);
  const auto axes = spatial_axes(c);
  const std::string text =
      axes ? "torch.adaptive_avg_pool" + std::to_string(*axes) + "d(" + x + ", " + ones(*axes) + ")"
           : "torch.mean(" + x + ", " + c.helper("_spatial_axes") + "(" + x + "), keepdim=True)";
  c.set(0, text, c.type(0), c.rank(0));
}

void global_max_pool(NodeContext& c) {
  const std::string x = c.tensor(0);
  const auto axes = spatial_axes(c);
  const std::string text =
      axes ? "torch.adaptive_max_pool" + std::to_string(*axes) + "d(" + x + ", " + ones(*axes) +
                 ")[0]"
           : "torch.amax(" + x + ", " + c.helper("_spatial_axes") + "(" + x + "), keepdim=True)";
  c.set(0, text, c.type(0), c.rank(0));
}

void global_lp_pool(NodeContext& c) {
  const std::string x = c.tensor(0);
  c.set(0,
        "torch.linalg_vector_norm(" + x + ", " + literal(static_cast<double>(c.int_or("p", 2))) +
            ", " + c.helper("_spatial_axes") + "(" + x + "), True)",
        c.type(0), c.rank(0));
}

constexpr Operator kPoolingOperators[] = {
    {"AveragePool", 1, average_pool},
    {"GlobalAveragePool", 1, global_average_pool},
    {"GlobalLpPool", 2, global_lp_pool},
    {"GlobalMaxPool", 1, global_max_pool},
    {"LpPool", 2, lp_pool},
    {"MaxPool", 1, max_pool},
    {"MaxUnpool", 9, max_unpool},
};

}  // namespace

std::span<const Operator> pooling_operators() { return kPoolingOperators; }

}  // namespace decent::onnx
