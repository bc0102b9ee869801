// Slices and messages against their definition, also where lengths are no multiples of anything.

#include <gtest/gtest.h>

#include "decent/codec/modulo_layout.h"

namespace decent {
namespace {

TEST(Parts, FollowOneAnotherAndBeginAtBlocks) {
  for (const std::int64_t numel : {0, 1, 31, 32, 33, 95, 1000, 4096}) {
    for (const std::int64_t parts : {1, 2, 3, 4, 7, 16, 64}) {
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range part = part_of(numel, i, parts);
        EXPECT_EQ(part.begin, end);
        EXPECT_TRUE(part.begin % 32 == 0 || part.begin == numel);
        EXPECT_LE(part.numel(), longest_part(numel, parts));
        end = part.end;
      }
      EXPECT_EQ(end, numel);
    }
  }
}

TEST(Parts, AreThoseOfTheFormula) {
  // 5 blocks of 32 in 3 parts: floor(5 i / 3) = 0, 1, 3, 5.
  EXPECT_EQ(part_of(150, 0, 3), (Range{0, 32}));
  EXPECT_EQ(part_of(150, 1, 3), (Range{32, 96}));
  EXPECT_EQ(part_of(150, 2, 3), (Range{96, 150}));
}

TEST(Slices, TakeTurns) {
  EXPECT_EQ(slice_after_step(150, 1, 3), part_of(150, 0, 3));
  EXPECT_EQ(slice_after_step(150, 3, 3), part_of(150, 2, 3));
  EXPECT_EQ(slice_after_step(150, 4, 3), part_of(150, 0, 3));
}

void expect_segment(const CodeSegment& s, Range range, std::int64_t byte, int bits, int exponent) {
  EXPECT_EQ((Range{s.begin, s.end}), range);
  EXPECT_EQ(s.byte, byte);
  EXPECT_EQ(s.bits, bits);
  EXPECT_EQ(s.exponent, exponent);
}

TEST(Layout, PutsTheFinePartFirst) {
  const std::vector<GridFrom> grids = {{.offset = 0, .exponent = -3}};
  // A slice of 1000 elements from 64 on, 32 blocks in 16 parts: part 5 is [320, 384) of it.
  const ModuloLayout layout = modulo_layout(kModulo2, {64, 1064}, 5, grids);
  ASSERT_EQ(layout.segments.size(), 3);
  expect_segment(layout.segments[0], {64, 384}, 64, 2, -3);
  expect_segment(layout.segments[1], {384, 448}, 0, 8, -3);
  expect_segment(layout.segments[2], {448, 1064}, 64 + 80, 2, -3);
  EXPECT_EQ(layout.fine_elements, 64);
  EXPECT_EQ(layout.bytes, 64 + 80 + 154);
}

TEST(Layout, SplitsWhereTheGridChanges) {
  const std::vector<GridFrom> grids = {{0, -3}, {96, -5}, {112, -4}};
  const ModuloLayout layout = modulo_layout(kModulo4, {0, 256}, 0, grids);
  ASSERT_EQ(layout.segments.size(), 4);
  expect_segment(layout.segments[0], {0, 32}, 0, 8, -3);
  expect_segment(layout.segments[1], {32, 96}, 32, 4, -3);
  expect_segment(layout.segments[2], {96, 112}, 64, 4, -5);
  expect_segment(layout.segments[3], {112, 256}, 72, 4, -4);
  EXPECT_EQ(layout.bytes, 32 + 224 / 2);
}

TEST(Layout, OfNothingIsEmpty) {
  const std::vector<GridFrom> grids = {{0, 0}};
  EXPECT_EQ(modulo_layout(kModulo2, {32, 32}, 0, grids).bytes, 0);
  // 3 elements: part 15 of 16 has all of them, the others none.
  EXPECT_EQ(modulo_layout(kModulo2, {0, 3}, 14, grids).fine_elements, 0);
  EXPECT_EQ(modulo_layout(kModulo2, {0, 3}, 14, grids).bytes, 1);
  EXPECT_EQ(modulo_layout(kModulo2, {0, 3}, 15, grids).bytes, 3);
}

}  // namespace
}  // namespace decent
