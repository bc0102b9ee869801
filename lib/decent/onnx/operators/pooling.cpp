// Pooling over windows, over all spatial axes, and back.

#include <limits>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/window.h"

namespace decent::onnx {
namespace {

bool has_dilation(const Window& window) {
  return window.dilations != std::vector<std::int64_t>(window.axes, 1);
}

std::int64_t rank_of(const Window& window) { return static_cast<std::int64_t>(window.axes) + 2; }

// "x, [3, 3], [2, 2], [1, 1], [0, 0, 0, 0], False": the first arguments of helpers for windows.
Arguments window_arguments(NodeContext& c, const Window& window) {
  const Expression kernel = kernel_expression(c, window, std::nullopt);
  return Arguments(c.tensor(0), kernel, list(window.strides), list(window.dilations),
                   padding_expression(c, window, kernel), window.ceil_mode);
}

void average_pool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const bool counts_padding = c.int_or("count_include_pad", 0) != 0;
  if (window.suits_pooling() && !has_dilation(window)) {
    const Expression pooled =
        call(function_of_axes(window, "torch.avg_pool"), c.tensor(0), list(*window.kernel),
             list(window.strides), list(window.begins), window.ceil_mode, counts_padding);
    return c.set(0, pooled, c.type(0), rank_of(window));
  }
  c.set(0, call(c.helper("_average_windows"), window_arguments(c, window), counts_padding),
        c.type(0), rank_of(window));
}

void lp_pool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const double p = static_cast<double>(c.int_or("p", 2));
  c.set(0, call(c.helper("_lp_pool"), window_arguments(c, window), p), c.type(0), rank_of(window));
}

// The lowest value that an element of a window can have.
Expression lowest(ElementType type) {
  if (is_floating(type)) return -std::numeric_limits<double>::infinity();
  return type == ElementType::int8 ? -128 : 0;
}

// The input, padded unless PyTorch's own function can do that.
struct PoolInput {
  Expression x;
  Expression padding;  // the padding of x, as constant_pad_nd takes it
  std::vector<std::int64_t> built_in;
  bool ceil_mode = false;
};

PoolInput max_pool_input(NodeContext& c, const Window& window) {
  const std::vector<std::int64_t> none(window.axes, 0);
  if (window.suits_pooling())
    return {c.tensor(0), list(std::vector<std::int64_t>(2 * window.axes, 0)), window.begins,
            window.ceil_mode};
  const Expression padding =
      c.variable("padding", call(c.helper("_window_padding"), window_arguments(c, window)));
  return {call("torch.constant_pad_nd", c.tensor(0), padding, lowest(c.type(0))), padding, none,
          false};
}

void max_pool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const PoolInput input = max_pool_input(c, window);
  const Arguments arguments(input.x, list(*window.kernel), list(window.strides),
                            list(input.built_in), list(window.dilations), input.ceil_mode);
  const std::string function = function_of_axes(window, "torch.max_pool");
  // PyTorch's one-dimensional function without indices does not take integers.
  const bool one_output = !c.wants(1) && (window.axes > 1 || is_floating(c.type(0)));
  if (one_output) return c.set(0, call(function, arguments), c.type(0), rank_of(window));
  const std::string indices = c.fresh_name("indices");
  c.assign(std::vector{c.declare(0, c.type(0), rank_of(window)), indices},
           call(function + "_with_indices", arguments));
  const bool column_major = c.int_or("storage_order", 0) != 0;
  c.set(1, call(c.helper("_flat_indices"), indices, c.tensor(0), input.padding, column_major),
        ElementType::int64, rank_of(window));
}

void max_unpool(NodeContext& c) {
  const Window window = window_of(c, std::nullopt);
  const Expression size = c.has(2) ? c.int_list(2) : empty_list("int");
  const Expression kernel = kernel_expression(c, window, std::nullopt);
  c.set(0,
        call(c.helper("_max_unpool"), c.tensor(0), c.tensor(1), kernel, list(window.strides),
             padding_expression(c, window, kernel), size),
        c.type(0), rank_of(window));
}

std::optional<std::int64_t> spatial_axes(const NodeContext& c) {
  if (!c.rank(0) || *c.rank(0) < 3 || *c.rank(0) > 5) return std::nullopt;
  return *c.rank(0) - 2;
}

// PyTorch's adaptive pooling to one element per axis.
Expression pooled_to_one(const std::string& function, const Expression& x, std::int64_t axes) {
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(axes), 1);
  return call(function + std::to_string(axes) + "d", x, list(ones));
}

Expression over_spatial_axes(NodeContext& c, const char* function, const Expression& x) {
  return call(function, x, call(c.helper("_spatial_axes"), x), keyword("keepdim", true));
}

// Exporters write this for adaptive pooling to one element.
void global_average_pool(NodeContext& c) {
  const Expression x = c.tensor(0);
  const auto axes = spatial_axes(c);
  set_like_input(c, axes ? pooled_to_one("torch.adaptive_avg_pool", x, *axes)
                         : over_spatial_axes(c, "torch.mean", x));
}

void global_max_pool(NodeContext& c) {
  const Expression x = c.tensor(0);
  const auto axes = spatial_axes(c);
  set_like_input(c, axes ? subscript(pooled_to_one("torch.adaptive_max_pool", x, *axes), 0)
                         : over_spatial_axes(c, "torch.amax", x));
}

void global_lp_pool(NodeContext& c) {
  const Expression x = c.tensor(0);
  const double p = static_cast<double>(c.int_or("p", 2));
  const bool keepdim = true;
  set_like_input(
      c, call("torch.linalg_vector_norm", x, p, call(c.helper("_spatial_axes"), x), keepdim));
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
