// Images by other coordinates: sampled by a grid, put together from blocks, regions cut out.

#include <algorithm>

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

using Choices = std::initializer_list<std::pair<std::string_view, const char*>>;

// PyTorch's number for an attribute's word.
std::string chosen(NodeContext& c, std::string_view attribute, const std::string& otherwise,
                   Choices choices) {
  const std::string value = c.string_or(attribute, otherwise);
  for (const auto& [word, number] : choices) {
    if (word == value) return number;
  }
  throw Unsupported("has " + std::string(attribute) + " '" + value +
                    "', which the specification does not know");
}

bool is_aligned(NodeContext& c) { return c.int_or("align_corners", 0) != 0; }

void grid_sample(NodeContext& c) {
  const std::string mode = chosen(
      c, "mode", "linear",
      {{"bilinear", "0"}, {"linear", "0"}, {"nearest", "1"}, {"bicubic", "2"}, {"cubic", "2"}});
  if (mode == "2" && c.rank(0).value_or(4) != 4)
    throw Unsupported("interpolates volumes cubically, which PyTorch does not");
  const std::string padding =
      chosen(c, "padding_mode", "zeros", {{"zeros", "0"}, {"border", "1"}, {"reflection", "2"}});
  c.set(0, call("torch.grid_sampler", c.tensor(0), c.tensor(1), mode, padding, is_aligned(c)),
        c.type(0), c.rank(0));
}

void affine_grid(NodeContext& c) {
  std::optional<std::int64_t> rank;
  if (const auto size = c.integers(1)) rank = static_cast<std::int64_t>(size->size());
  c.set(0, call("torch.affine_grid_generator", c.tensor(0), c.int_list(1), is_aligned(c)),
        c.type(0), rank);
}

// An attribute with one or two integers for each dimension.
Expression by_dimension(NodeContext& c, std::string_view name, const Expression& block,
                        std::int64_t otherwise) {
  if (const auto given = c.ints(name)) return list(*given);
  return binary(list(otherwise), "*", call("len", block));
}

// PyTorch's function takes images with the same padding on both sides.
bool is_torch_col2im(NodeContext& c) {
  const auto block = c.integers(2);
  const auto pads = c.ints("pads").value_or(std::vector<std::int64_t>(4, 0));
  return block && block->size() == 2 && pads.size() == 4 && pads[0] == pads[2] &&
         pads[1] == pads[3];
}

void col2im(NodeContext& c) {
  const Expression block = c.variable("block", c.int_list(2));
  const Expression pads = c.variable("pads", by_dimension(c, "pads", binary(block, "+", block), 0));
  const Arguments shapes(c.tensor(0), c.int_list(1), block, by_dimension(c, "dilations", block, 1));
  const Expression strides = by_dimension(c, "strides", block, 1);
  std::optional<std::int64_t> rank;
  if (const auto known = c.integers(2)) rank = static_cast<std::int64_t>(known->size()) + 2;
  c.set(0,
        is_torch_col2im(c) ? call("torch.col2im", shapes, subscript(pads, ":2"), strides)
                           : call(c.helper("_col2im"), shapes, pads, strides),
        c.type(0), rank);
}

bool shifts_half_a_pixel(NodeContext& c) {
  if (c.opset() < 16) return false;
  return chosen(c, "coordinate_transformation_mode", "half_pixel",
                {{"half_pixel", "1"}, {"output_half_pixel", "0"}}) == "1";
}

void roi_align(NodeContext& c) {
  const std::string largest = chosen(c, "mode", "avg", {{"avg", "False"}, {"max", "True"}});
  c.set(
      0,
      call(c.helper("_roi_align"), c.tensor(0), c.tensor(1), c.tensor(2),
           c.int_or("output_height", 1), c.int_or("output_width", 1), c.int_or("sampling_ratio", 0),
           c.float_or("spatial_scale", 1), shifts_half_a_pixel(c), largest),
      c.type(0), 4);
}

void non_max_suppression(NodeContext& c) {
  c.set(0,
        call(c.helper("_non_max_suppression"), c.tensor(0), c.tensor(1),
             c.has(2) ? c.int_scalar(2) : "0", c.has(3) ? c.float_scalar(3) : "0.0",
             c.has(4) ? c.float_scalar(4) : "None", c.int_or("center_point_box", 0) != 0),
        ElementType::int64, 2);
}

constexpr Operator kGridOperators[] = {
    {"AffineGrid", 20, affine_grid},
    {"Col2Im", 18, col2im},
    {"GridSample", 16, grid_sample},
    {"NonMaxSuppression", 10, non_max_suppression, Folding::never, Gradient::stops},
    {"RoiAlign", 10, roi_align},
};

}  // namespace

std::span<const Operator> grid_operators() { return kGridOperators; }

}  // namespace decent::onnx
