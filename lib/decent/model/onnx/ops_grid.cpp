// Images by other coordinates: GridSample, AffineGrid, Col2Im.

#include <algorithm>

#include "decent/model/onnx/operators.h"

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

const char* aligned(NodeContext& c) { return c.int_or("align_corners", 0) != 0 ? "True" : "False"; }

void grid_sample(NodeContext& c) {
  const std::string mode = chosen(
      c, "mode", "linear",
      {{"bilinear", "0"}, {"linear", "0"}, {"nearest", "1"}, {"bicubic", "2"}, {"cubic", "2"}});
  if (mode == "2" && c.rank(0).value_or(4) != 4)
    throw Unsupported("interpolates volumes cubically, which PyTorch does not");
  const std::string padding =
      chosen(c, "padding_mode", "zeros", {{"zeros", "0"}, {"border", "1"}, {"reflection", "2"}});
  c.set(0,
        "torch.grid_sampler(" + c.tensor(0) + ", " + c.tensor(1) + ", " + mode + ", " + padding +
            ", " + aligned(c) + ")",
        c.type(0), c.rank(0));
}

void affine_grid(NodeContext& c) {
  std::optional<std::int64_t> rank;
  if (const auto size = c.integers(1)) rank = static_cast<std::int64_t>(size->size());
  c.set(
      0,
      "torch.affine_grid_generator(" + c.tensor(0) + ", " + c.int_list(1) + ", " + aligned(c) + ")",
      c.type(0), rank);
}

std::string list(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

void col2im(NodeContext& c) {
  const auto block = c.integers(2);
  if (!block) throw Unsupported("has a block_shape of unknown length");
  const std::size_t spatial = block->size();
  const std::vector<std::int64_t> ones(spatial, 1);
  const auto dilations = c.ints("dilations").value_or(ones);
  const auto strides = c.ints("strides").value_or(ones);
  const auto pads = c.ints("pads").value_or(std::vector<std::int64_t>(2 * spatial, 0));
  if (dilations.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    throw Unsupported("has dilations, strides or pads for another number of dimensions");
  const std::vector<std::int64_t> begin(pads.begin(), pads.begin() + static_cast<long>(spatial));
  const std::vector<std::int64_t> end(pads.begin() + static_cast<long>(spatial), pads.end());
  const std::string shapes =
      c.tensor(0) + ", " + c.int_list(1) + ", " + c.int_list(2) + ", " + list(dilations) + ", ";
  const bool same_as_torch = spatial == 2 && begin == end;
  c.set(0,
        same_as_torch ? "torch.col2im(" + shapes + list(begin) + ", " + list(strides) + ")"
                      : c.helper("_col2im") + "(" + shapes + list(begin) + ", " + list(end) + ", " +
                            list(strides) + ")",
        c.type(0), static_cast<std::int64_t>(spatial + 2));
}

constexpr Operator kOperators[] = {
    {"AffineGrid", 20, affine_grid},
    {"Col2Im", 18, col2im},
    {"GridSample", 16, grid_sample},
};

}  // namespace

std::span<const Operator> grid_operators() { return kOperators; }

}  // namespace decent::onnx
