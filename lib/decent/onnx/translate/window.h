#pragma once
// Windows that slide over the spatial axes of (N, C, D1, ..), which Conv, ConvTranspose and the
// pooling operators have in common.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

struct Window {
  enum class Padding {
    given,       // begins and ends
    same_upper,  // as the input's size requires; an odd element at the end
    same_lower,  // at the beginning
  };
  std::size_t axes = 0;  // spatial
  std::optional<std::vector<std::int64_t>> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  Padding padding = Padding::given;
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> ends;
  bool ceil_mode = false;

  bool is_symmetric() const { return padding == Padding::given && begins == ends; }
  /// Whether torch.max_pool2d takes the padding: the same at both ends, and at most half of the
  /// window.
  bool suits_pooling() const;
};

/// Reads the attributes. `weight`, if there is one, is the input that has the kernel's shape. SAME
/// padding that does not depend on the input's size becomes `given`. Throws Unsupported unless
/// there are 1 to 3 spatial axes and every attribute has one number for each (pads: two).
Window window_of(NodeContext& c, std::optional<std::size_t> weight);

/// "torch.conv2d" for "torch.conv" and two axes.
std::string function_of_axes(const Window& window, const std::string& stem);

/// The kernel's shape, a List[int]; that of `weight` if the model does not state it.
Expression kernel_expression(NodeContext& c, const Window& window,
                             std::optional<std::size_t> weight);

/// The padding for torch.constant_pad_nd, with the last axis first: a literal or a call.
Expression padding_expression(NodeContext& c, const Window& window, const Expression& kernel);

}  // namespace decent::onnx
