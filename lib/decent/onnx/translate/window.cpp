#include "decent/onnx/translate/window.h"

#include <algorithm>
#include <limits>

#include "decent/onnx/translate/expression.h"

namespace decent::onnx {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kMaxAxes = 3;
constexpr std::int64_t kLeastPad = std::numeric_limits<std::int32_t>::min();  // below 0: cuts off

// The number of axes after the batch and the channels.
std::optional<std::size_t> spatial_axes(std::optional<std::int64_t> rank) {
  if (!rank) return std::nullopt;
  return static_cast<std::size_t>(std::max<std::int64_t>(*rank - 2, 0));
}

std::size_t count_axes(NodeContext& c, std::optional<std::size_t> weight) {
  std::optional<std::size_t> axes;
  if (const auto kernel = c.ints("kernel_shape")) axes = kernel->size();
  if (!axes && weight) axes = spatial_axes(c.rank(*weight));
  if (!axes) axes = spatial_axes(c.rank(0));
  if (!axes) throw Unsupported("has an input of unknown rank and no kernel_shape");
  if (*axes < 1 || *axes > kMaxAxes)
    throw Unsupported("has " + std::to_string(*axes) + " spatial axes; PyTorch has 1 to 3");
  return *axes;
}

// Steps and extents must be positive, and so small that results of these numbers fit into 64 bits.
void check_numbers(const Numbers& given, const char* name, std::int64_t least) {
  constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t each : given) {
    if (each >= least && each <= kMaxInt32) continue;
    throw Unsupported("has " + std::to_string(each) + " in '" + name + "'; " +
                      std::to_string(least) + " to " + std::to_string(kMaxInt32) + " are");
  }
}

Numbers numbers(const NodeContext& c, const char* name, std::size_t count, std::int64_t otherwise,
                std::int64_t least) {
  const Numbers given = c.ints(name).value_or(Numbers(count, otherwise));
  if (given.size() != count) {
    throw Unsupported("has " + std::to_string(given.size()) + " numbers in '" + name + "', not " +
                      std::to_string(count));
  }
  check_numbers(given, name, least);
  return given;
}

std::optional<Numbers> kernel_of(NodeContext& c, std::optional<std::size_t> weight) {
  if (const auto given = c.ints("kernel_shape")) {
    check_numbers(*given, "kernel_shape", 1);
    return given;
  }
  if (!weight) throw Unsupported("lacks kernel_shape");
  const auto& dims = c.input(*weight).dims;
  if (!dims) return std::nullopt;
  if (dims->size() < 2) throw Unsupported("has a weight of rank " + std::to_string(dims->size()));
  return Numbers(dims->begin() + 2, dims->end());
}

// With steps of one, the padding does not depend on the input's size.
void settle_same_padding(Window& window) {
  const bool steps_of_one = std::all_of(window.strides.begin(), window.strides.end(),
                                        [](std::int64_t stride) { return stride == 1; });
  if (!steps_of_one || !window.kernel) return;
  for (std::size_t i = 0; i < window.axes; ++i) {
    const std::int64_t total = ((*window.kernel)[i] - 1) * window.dilations[i];
    const bool upper = window.padding == Window::Padding::same_upper;
    window.begins[i] = upper ? total / 2 : total - total / 2;
    window.ends[i] = total - window.begins[i];
  }
  window.padding = Window::Padding::given;
}

void read_padding(NodeContext& c, Window& window) {
  const std::string automatic = c.string_or("auto_pad", "NOTSET");
  window.begins = window.ends = Numbers(window.axes, 0);
  if (automatic == "NOTSET") {
    const Numbers pads = numbers(c, "pads", 2 * window.axes, 0, kLeastPad);
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(window.axes);
    window.begins.assign(pads.begin(), middle);
    window.ends.assign(middle, pads.end());
    return;
  }
  // auto_pad already determines the size of the output.
  window.ceil_mode = false;
  if (automatic == "VALID") return;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") {
    throw Unsupported("has auto_pad '" + automatic +
                      "'; NOTSET, SAME_UPPER, SAME_LOWER and VALID are");
  }
  window.padding =
      automatic == "SAME_UPPER" ? Window::Padding::same_upper : Window::Padding::same_lower;
  settle_same_padding(window);
}

}  // namespace

bool Window::suits_pooling() const {
  if (!is_symmetric() || !kernel) return false;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t extent = ((*kernel)[i] - 1) * dilations[i] + 1;
    if (begins[i] < 0 || 2 * begins[i] > extent) return false;
  }
  return true;
}

Window window_of(NodeContext& c, std::optional<std::size_t> weight) {
  Window window;
  window.axes = count_axes(c, weight);
  window.kernel = kernel_of(c, weight);
  if (window.kernel && window.kernel->size() != window.axes)
    throw Unsupported("has a kernel of another rank than its input");
  window.strides = numbers(c, "strides", window.axes, 1, 1);
  window.dilations = numbers(c, "dilations", window.axes, 1, 1);
  window.ceil_mode = c.int_or("ceil_mode", 0) != 0;
  read_padding(c, window);
  return window;
}

std::string function_of_axes(const Window& window, const std::string& stem) {
  return stem + std::to_string(window.axes) + "d";
}

Expression kernel_expression(NodeContext& c, const Window& window,
                             std::optional<std::size_t> weight) {
  if (window.kernel) return list(*window.kernel);
  return subscript(attribute(c.tensor(*weight), "shape"), "2:");
}

Expression padding_expression(NodeContext& c, const Window& window, const Expression& kernel) {
  if (window.padding != Window::Padding::given) {
    return call(c.helper("_same_padding"), c.tensor(0), kernel, list(window.strides),
                list(window.dilations), window.padding == Window::Padding::same_upper);
  }
  Numbers pads;
  for (std::size_t i = window.axes; i-- > 0;) {
    pads.push_back(window.begins[i]);
    pads.push_back(window.ends[i]);
  }
  return list(pads);
}

}  // namespace decent::onnx
