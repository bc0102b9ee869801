// Convolutions and transposed convolutions of one to three spatial axes.

#include <algorithm>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/window.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kWeight = 1;
constexpr std::size_t kBias = 2;

// Dynamo's exporter writes a bias of zeros for a convolution without bias.
bool is_zero(const Value& value) {
  if (!value.is_constant()) return false;
  const std::vector<double> elements = as_doubles(*value.constant);
  return std::all_of(elements.begin(), elements.end(), [](double each) { return each == 0; });
}

std::string bias_of(NodeContext& c) {
  return c.has(kBias) && !is_zero(c.input(kBias)) ? c.tensor(kBias) : "None";
}

bool has_negative(const std::vector<std::int64_t>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](std::int64_t each) { return each < 0; });
}

void set_of_window(NodeContext& c, const Window& window, const Expression& expression) {
  c.set(0, expression, c.type(0), static_cast<std::int64_t>(window.axes) + 2);
}

void conv(NodeContext& c) {
  const Window window = window_of(c, kWeight);
  const bool built_in = window.is_symmetric() && !has_negative(window.begins);
  Expression x = c.tensor(0);
  if (!built_in) {
    const Expression kernel = kernel_expression(c, window, kWeight);
    x = call("torch.constant_pad_nd", x, padding_expression(c, window, kernel), 0.0);
  }
  const std::vector<std::int64_t> none(window.axes, 0);
  set_of_window(c, window,
                call(function_of_axes(window, "torch.conv"), x, c.tensor(kWeight), bias_of(c),
                     list(window.strides), list(built_in ? window.begins : none),
                     list(window.dilations), c.int_or("group", 1)));
}

std::vector<std::int64_t> output_padding_of(const NodeContext& c, const Window& window) {
  const auto given = c.ints("output_padding").value_or(std::vector<std::int64_t>(window.axes, 0));
  if (given.size() != window.axes) throw Unsupported("has an output_padding of another rank");
  for (std::size_t i = 0; i < window.axes; ++i) {
    if (given[i] < 0 || given[i] >= std::max(window.strides[i], window.dilations[i]))
      throw Unsupported("has an output_padding that is not below its stride or dilation");
  }
  return given;
}

Expression transposed(NodeContext& c, const Window& window, const Expression& bias,
                      const std::vector<std::int64_t>& padding) {
  return call(function_of_axes(window, "torch.conv_transpose"), c.tensor(0), c.tensor(kWeight),
              bias, list(window.strides), list(padding), list(output_padding_of(c, window)),
              c.int_or("group", 1), list(window.dilations));
}

// The padding that a convolution adds to its input is cut off from the output here.
Expression cropped(const Window& window, const Expression& whole) {
  std::vector<std::int64_t> pads;
  for (std::size_t i = window.axes; i-- > 0;) {
    pads.push_back(-window.begins[i]);
    pads.push_back(-window.ends[i]);
  }
  return call("torch.constant_pad_nd", whole, list(pads), 0.0);
}

// The sizes of the output's spatial axes, if they are given instead of padding.
std::optional<Expression> output_size(NodeContext& c, const Window& window) {
  if (auto given = c.ints("output_shape"); given && !given->empty()) {
    if (given->size() == window.axes + 2) given->erase(given->begin(), given->begin() + 2);
    if (given->size() != window.axes) throw Unsupported("has an output_shape of another rank");
    return list(*given);
  }
  const std::string automatic = c.string_or("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic == "VALID") return std::nullopt;
  Arguments sizes;
  for (std::size_t i = 0; i < window.axes; ++i)
    sizes.add(binary(method(c.tensor(0), "size", i + 2), "*", window.strides[i]));
  return list(sizes);
}

// The bias is added last, because the size may be larger than the convolution's output.
void conv_transpose_to_size(NodeContext& c, const Window& window, const Expression& size) {
  const bool upper = c.string_or("auto_pad", "NOTSET") == "SAME_UPPER";
  const std::vector<std::int64_t> none(window.axes, 0);
  Expression result = call(c.helper("_fit"), transposed(c, window, "None", none), size, upper);
  if (c.has(kBias)) {
    std::vector<std::int64_t> shape(window.axes + 1, 1);
    shape.front() = -1;
    result = binary(result, "+", method(c.tensor(kBias), "view", list(shape)));
  }
  set_of_window(c, window, result);
}

void conv_transpose(NodeContext& c) {
  const Window window = window_of(c, kWeight);
  if (const auto size = output_size(c, window)) return conv_transpose_to_size(c, window, *size);
  if (window.is_symmetric() && !has_negative(window.begins))
    return set_of_window(c, window, transposed(c, window, bias_of(c), window.begins));
  // Where a crop is negative, the output would have to be the bias alone.
  if (has_negative(window.begins) || has_negative(window.ends))
    throw Unsupported("has negative pads");
  const std::vector<std::int64_t> none(window.axes, 0);
  set_of_window(c, window, cropped(window, transposed(c, window, bias_of(c), none)));
}

constexpr Operator kConvolutionOperators[] = {
    {"Conv", 1, conv},
    {"ConvTranspose", 1, conv_transpose},
};

}  // namespace

std::span<const Operator> convolution_operators() { return kConvolutionOperators; }

}  // namespace decent::onnx
