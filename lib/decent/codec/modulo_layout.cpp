#include "decent/codec/modulo_layout.h"

#include <algorithm>

namespace decent {
namespace {

// Appends the segments of the elements `run`, one for each grid in it. Their codes begin at `byte`.
void add_run(const Range& run, int bits, std::int64_t byte, std::span<const GridFrom> grids,
             std::vector<CodeSegment>& segments) {
  if (run.empty()) return;
  auto grid = std::upper_bound(grids.begin(), grids.end(), run.begin,
                               [](std::int64_t at, const GridFrom& g) { return at < g.offset; });
  for (--grid; grid != grids.end() && grid->offset < run.end; ++grid) {
    const auto next = grid + 1;
    const std::int64_t begin = std::max(run.begin, grid->offset);
    const std::int64_t end = next == grids.end() ? run.end : std::min(run.end, next->offset);
    if (begin == end) continue;
    segments.push_back({.begin = begin,
                        .end = end,
                        .byte = byte + bytes_of_codes(begin - run.begin, bits),
                        .bits = bits,
                        .exponent = grid->exponent});
  }
}

}  // namespace

ModuloLayout modulo_layout(const ModuloFormat& format, const Range& slice, std::int64_t fine_part,
                           std::span<const GridFrom> grids) {
  const Range part = part_of(slice.numel(), fine_part, format.parts);
  const Range fine{slice.begin + part.begin, slice.begin + part.end};
  const Range before{slice.begin, fine.begin};
  const Range after{fine.end, slice.end};
  const std::int64_t after_at = fine.numel() + bytes_of_codes(before.numel(), format.bits);

  ModuloLayout layout;
  add_run(before, format.bits, fine.numel(), grids, layout.segments);
  add_run(fine, 8, 0, grids, layout.segments);
  add_run(after, format.bits, after_at, grids, layout.segments);
  layout.bytes = after_at + bytes_of_codes(after.numel(), format.bits);
  layout.fine_elements = fine.numel();
  return layout;
}

}  // namespace decent
