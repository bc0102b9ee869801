#include "decent/pt2/program/program.h"

#include <algorithm>

#include "decent/core/text.h"

namespace decent::pt2 {

std::optional<std::string> symbol_of(const SymInt& number) {
  constexpr std::string_view kBegin = "Symbol('";
  const std::string_view text = number.expression;
  if (number.value) return std::nullopt;
  if (!text.starts_with(kBegin)) {  // older versions write only the name
    const bool is_name = !text.empty() && text.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789_") == std::string_view::npos;
    return is_name ? std::optional<std::string>(text) : std::nullopt;
  }
  const std::size_t end = text.find('\'', kBegin.size());
  const bool is_whole = end != std::string_view::npos && text.find('(', end) == text.npos &&
                        text.find(')') == text.size() - 1;
  if (!is_whole) return std::nullopt;  // an expression that begins with a symbol
  return std::string(text.substr(kBegin.size(), end - kBegin.size()));
}

std::string declared_text(const TensorMeta& meta) {
  std::vector<std::string> parts;
  for (const SymInt& size : meta.sizes) {
    parts.push_back(size.value ? std::to_string(*size.value) : symbol_of(size).value_or("?"));
  }
  return "[" + join(parts) + "]";
}

std::int64_t Payload::count() const {
  if (std::ranges::find(sizes, 0) != sizes.end()) return 0;  // the others may be of any size
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

StorageRange Payload::range() const {
  if (count() == 0) return {};
  const auto begin = static_cast<std::uint64_t>(storage_offset);
  StorageRange range{begin, begin + 1};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    range.end += static_cast<std::uint64_t>(sizes[i] - 1) * static_cast<std::uint64_t>(strides[i]);
  return range;
}

bool Payload::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool Payload::is_same_view(const Payload& other) const {
  return record == other.record && dtype == other.dtype && sizes == other.sizes &&
         strides == other.strides && storage_offset == other.storage_offset;
}

std::size_t TreeSpec::leaves() const {
  if (kind == Kind::leaf) return 1;
  std::size_t sum = 0;
  for (const TreeSpec& child : children) sum += child.leaves();
  return sum;
}

}  // namespace decent::pt2
