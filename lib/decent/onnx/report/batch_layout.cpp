#include "decent/onnx/report/batch_layout.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <numeric>
#include <vector>

#include "decent/core/text.h"

namespace decent::onnx {
namespace {

using Shape = std::vector<Dimension>;
using Sizes = std::span<const std::int64_t>;

// Some exporters write 0 for a free dimension.
std::optional<std::int64_t> fixed_size(const Dimension& dimension) {
  return dimension.value.value_or(0) > 0 ? dimension.value : std::nullopt;
}

std::string declared_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const Dimension& each : shape) {
    const auto size = fixed_size(each);
    parts.push_back(size ? std::to_string(*size) : each.parameter.empty() ? "?" : each.parameter);
  }
  return "[" + join(parts) + "]";
}

bool is_batch_name(const std::string& name) {
  static constexpr std::array<std::string_view, 3> kShort = {"n", "b", "bs"};
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("batch") != std::string::npos ||
         std::find(kShort.begin(), kShort.end(), lower) != kShort.end();
}

// The dimension, other than the first, that the file names as the batch.
std::optional<std::size_t> named_batch(const Shape& shape) {
  if (shape.empty() || is_batch_name(shape.front().parameter)) return std::nullopt;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    if (!fixed_size(shape[i]) && is_batch_name(shape[i].parameter)) return i;
  }
  return std::nullopt;
}

/// How the shape of a sample fits `shape` without its dimension `batch`.
struct Fit {
  bool fits = true;
  bool has_number = false;  // a number in both, so that the fit is not due to free dimensions alone
};

Fit fit(const Shape& shape, std::size_t batch, Sizes sample) {
  Fit result;
  std::size_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == batch) continue;
    const auto size = fixed_size(shape[i]);
    if (size && *size != sample[at]) result.fits = false;
    if (size && *size == sample[at]) result.has_number = true;
    ++at;
  }
  return result;
}

// The only dimension, other than the first, without which the samples fit, if the first is a
// number.
std::optional<std::size_t> fitting_batch(const Shape& shape, Sizes sample) {
  if (!fixed_size(shape.front())) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const Fit found_here = fit(shape, i, sample);
    if (!found_here.fits || !found_here.has_number) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// An order of dimensions for numpy's transpose: (0, 3, 1, 2).
using Order = std::vector<std::size_t>;

std::string order_text(const Order& order) {
  std::vector<std::string> parts;
  for (const std::size_t each : order) parts.push_back(std::to_string(each));
  return join(parts);
}

bool fits_in_order(const Shape& shape, Sizes batch, const Order& order) {
  std::vector<std::int64_t> sample;
  for (std::size_t i = 1; i < order.size(); ++i) sample.push_back(batch[order[i]]);
  const Fit found = fit(shape, 0, sample);
  return found.fits && found.has_number;
}

// The order for channels that are last in the data and first in the file, or the other way round.
std::optional<Order> fitting_order(const Shape& shape, Sizes batch) {
  if (shape.size() < 3) return std::nullopt;
  Order to_front(shape.size());
  std::iota(to_front.begin(), to_front.end(), std::size_t{0});
  Order to_back = to_front;
  std::rotate(to_front.begin() + 1, to_front.end() - 1, to_front.end());
  std::rotate(to_back.begin() + 1, to_back.begin() + 2, to_back.end());
  for (const Order& order : {to_front, to_back}) {
    if (fits_in_order(shape, batch, order)) return order;
  }
  return std::nullopt;
}

std::string wanted_sample(const Shape& shape) {
  return declared_text(Shape(shape.begin() + 1, shape.end()));
}

LayoutMismatch of_batch(std::size_t place, const ExportAdvice& advice) {
  return {"the batch is dimension " + std::to_string(place) +
              " there (counted from 0), but samples of the data are dimension 0, so that they are "
              "mixed up",
          capitalised(advice.batch_first)};
}

LayoutMismatch of_order(const Shape& shape, const Order& order) {
  const bool to_front = order[1] == order.size() - 1;
  const bool is_image = order.size() > 3;
  const std::string text = !is_image  ? "the dimensions of a sample are in the other order"
                           : to_front ? "the channels come first in the file and last in the data"
                                      : "the channels come last in the file and first in the data";
  return {text, "Store samples as " + wanted_sample(shape) + "; in numpy: x.transpose(" +
                    order_text(order) + ")"};
}

// Advice to reshape with numpy, if the number of elements is the same.
std::string reshaping(const Shape& shape, Sizes sample) {
  std::string text;
  std::int64_t wanted = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const auto size = fixed_size(shape[i]);
    if (!size) return "";
    wanted *= *size;
    text += ", " + std::to_string(*size);
  }
  const std::int64_t there =
      std::accumulate(sample.begin(), sample.end(), std::int64_t{1}, std::multiplies<>());
  return wanted == there ? "; in numpy: x.reshape(-1" + text + ")" : "";
}

LayoutMismatch of_rank(const Shape& shape, Sizes sample) {
  return {"a sample has " + std::to_string(shape.size() - 1) + " dimensions in the file and " +
              std::to_string(sample.size()) + " in the data",
          "Store samples as " + wanted_sample(shape) + reshaping(shape, sample)};
}

LayoutMismatch of_sizes(const Shape& shape, Sizes batch, const ExportAdvice& advice) {
  std::vector<std::string> places;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const auto size = fixed_size(shape[i]);
    if (size && *size != batch[i]) places.push_back(std::to_string(i));
  }
  return {"they differ in dimension " + join(places, " and "),
          "Store samples as " + wanted_sample(shape) + ", or " + std::string(advice.free_sizes)};
}

std::optional<LayoutMismatch> find_mismatch(const Shape& shape, Sizes batch,
                                            const ExportAdvice& advice) {
  const Sizes sample = batch.subspan(1);
  if (shape.size() != batch.size()) return of_rank(shape, sample);
  if (const auto place = named_batch(shape)) return of_batch(*place, advice);
  if (fit(shape, 0, sample).fits) return std::nullopt;
  if (const auto order = fitting_order(shape, batch)) return of_order(shape, *order);
  if (const auto place = fitting_batch(shape, sample)) return of_batch(*place, advice);
  return of_sizes(shape, batch, advice);
}

}  // namespace

std::optional<LayoutMismatch> input_mismatch(const ValueInfo& input, const std::string& field,
                                             Sizes batch, const ExportAdvice& advice) {
  // A shape without dimensions means that the tool did not know it.
  if (input.kind != ValueInfo::Kind::tensor || !input.shape || input.shape->empty() ||
      batch.empty())
    return std::nullopt;
  auto found = find_mismatch(*input.shape, batch, advice);
  if (!found) return std::nullopt;
  found->text = "input '" + input.name + "' of the model is " + declared_text(*input.shape) +
                " in the file, the field '" + field + "' of a batch is " + shape_text(batch) +
                ": " + found->text;
  return found;
}

std::optional<LayoutMismatch> output_mismatch(const ValueInfo& output,
                                              std::optional<std::int64_t> class_dim,
                                              const ExportAdvice& advice) {
  if (output.kind != ValueInfo::Kind::tensor || !output.shape) return std::nullopt;
  const auto place = named_batch(*output.shape);
  if (!place || (*place == 1 && class_dim == 0)) return std::nullopt;
  LayoutMismatch found = of_batch(*place, advice);
  found.text = "output '" + output.name + "' of the model is " + declared_text(*output.shape) +
               " in the file: " + found.text;
  return found;
}

}  // namespace decent::onnx
