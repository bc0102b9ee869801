#include "decent/report/exchange_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kMiB = 1024 * 1024;

TEST(SentText, TellsBytesAndTheTimeOfTheLink) {
  EXPECT_EQ(sent_text({.method = "fp32", .bytes = 3.25 * kMiB}), "3.2 MiB a worker and step");
  // 25e6 bytes are 200e6 bits.
  EXPECT_EQ(sent_text({.method = "fp32", .bytes = 25e6, .link_mbit = 200}),
            "23.8 MiB a worker and step, 1 s at 200 Mbit/s");
  EXPECT_EQ(sent_text({.method = "fp32", .bytes = 1000, .link_mbit = 0.5}),
            "1000 B a worker and step, 0.016 s at 0.5 Mbit/s");
}

TEST(SentText, TellsEdgesWithinMachinesApart) {
  EXPECT_EQ(sent_text({.method = "m", .bytes = 1000, .bytes_within = 2048}),
            "1000 B a worker and step in edges between machines; 2.0 KiB in edges within");
  EXPECT_EQ(sent_text({.method = "m", .bytes = 1000, .link_mbit = 0.5, .bytes_within = 0}),
            "1000 B a worker and step in edges between machines, 0.016 s at 0.5 Mbit/s; 0 B in "
            "edges within");
  EXPECT_EQ(sent_text({.method = "m", .bytes_within = 0}), "not known");
}

TEST(SentText, SaysWhereTheMethodDoesNot) {
  EXPECT_EQ(sent_text({.method = "own", .link_mbit = 200}), "not known");
}

TEST(MethodText, TellsOfSlicesWhereThereAreSeveral) {
  EXPECT_EQ(method_text({.method = "bf16"}), "bf16");
  EXPECT_EQ(method_text({.method = "modulo2", .slices = 4}), "modulo2, 4 slices");
}

TEST(LargeEdgeNote, NamesTheTopologyOfPairs) {
  EXPECT_THAT(large_edge_note({.members = 8, .bytes = 7 * kMiB, .pairs = 1.75}),
              AllOf(HasSubstr("edge of 8"), HasSubstr("7.0 MiB a step"), HasSubstr("1.75 times"),
                    HasSubstr("parallel.topology: one-peer-exp")));
}

}  // namespace
}  // namespace decent
