#pragma once
// Which elements of an array are exchanged in a step, if not all are.

#include <algorithm>
#include <cstdint>

namespace decent {

/// Elements [begin, end) of an array.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t numel() const { return end - begin; }
  bool empty() const { return begin >= end; }
  bool operator==(const Range&) const = default;
};

inline Range overlap(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// Part number `part` of `parts` of an array of `numel` elements, [c(part), c(part + 1)) with
/// c(i) = min(numel, 32 floor(i ceil(numel / 32) / parts)): parts begin at multiples of 32, differ
/// by at most 32 elements in length, and may be empty.
inline Range part_of(std::int64_t numel, std::int64_t part, std::int64_t parts) {
  constexpr std::int64_t kBlock = 32;
  const std::int64_t blocks = (numel + kBlock - 1) / kBlock;
  const auto begin_of = [&](std::int64_t i) {
    return std::min(numel, kBlock * (i * blocks / parts));
  };
  return {begin_of(part), begin_of(part + 1)};
}

/// The number of elements of the longest part.
inline std::int64_t longest_part(std::int64_t numel, std::int64_t parts) {
  const std::int64_t blocks = (numel + 31) / 32;
  return std::min(numel, 32 * ((blocks + parts - 1) / parts));
}

/// The part of a bucket of `numel` elements that is exchanged after step `step` = 1, 2, .. if K =
/// `slices` parts take turns: part number (step - 1) mod K.
inline Range slice_after_step(std::int64_t numel, std::int64_t step, std::int64_t slices) {
  return part_of(numel, (step - 1) % slices, slices);
}

}  // namespace decent
