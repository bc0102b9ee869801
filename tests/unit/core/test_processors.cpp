#include "decent/core/host.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <string>

#include "../support/temporary_folder.h"

namespace decent {
namespace {

// Folders that look like /proc and /sys/fs/cgroup.
class Groups : public ::testing::Test {
 protected:
  void is_in(const std::string& group) {
    std::filesystem::create_directories(proc() / "self");
    std::ofstream(proc() / "self" / "cgroup") << "12:cpu:/old\n0::/" << group << "\n";
  }
  void allow(const std::string& group, const std::string& limit) {
    std::filesystem::create_directories(groups() / group);
    std::ofstream(groups() / group / "cpu.max") << limit << "\n";
  }
  std::filesystem::path proc() const { return folder_.path() / "proc"; }
  std::filesystem::path groups() const { return folder_.path() / "groups"; }
  int quota() const { return processor_quota(proc(), groups()); }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(Groups, LimitNothingWhereThereAreNone) { EXPECT_EQ(quota(), 0); }

TEST_F(Groups, LimitNothingByMax) {
  is_in("a");
  allow("a", "max 100000");
  EXPECT_EQ(quota(), 0);
}

TEST_F(Groups, AreRoundedUp) {
  is_in("a/b");
  allow("a/b", "250000 100000");
  EXPECT_EQ(quota(), 3);
}

TEST_F(Groups, CountWithThoseAroundThem) {
  is_in("a/b");
  allow("a", "100000 100000");
  allow("a/b", "400000 100000");
  EXPECT_EQ(quota(), 1);
}

// In a container the file system shows the own group as the root.
TEST_F(Groups, CountAtTheRoot) {
  is_in("");
  allow("", "150000 50000");
  EXPECT_EQ(quota(), 3);
}

TEST_F(Groups, OtherTextIsNoLimit) {
  is_in("a");
  allow("a", "");
  EXPECT_EQ(quota(), 0);
}

// Version 1: a line for each controller, or for several that are mounted together.
class OldGroups : public Groups {
 protected:
  void are(const std::string& lines) {
    std::filesystem::create_directories(proc() / "self");
    std::ofstream(proc() / "self" / "cgroup") << lines;
  }
  void allow_old(const std::string& group, long quota, long period) {
    std::filesystem::create_directories(groups() / group);
    std::ofstream(groups() / group / "cpu.cfs_quota_us") << quota << "\n";
    std::ofstream(groups() / group / "cpu.cfs_period_us") << period << "\n";
  }
};

TEST_F(OldGroups, LimitByMicrosecondsOfAPeriod) {
  are("5:memory:/x\n4:cpu:/a/b\n0::/\n");
  allow_old("cpu/a/b", 250000, 100000);
  EXPECT_EQ(quota(), 3);
  allow_old("cpu/a", 50000, 100000);
  EXPECT_EQ(quota(), 1);
}

TEST_F(OldGroups, LimitNothingByMinusOne) {
  are("4:cpu:/a\n");
  allow_old("cpu/a", -1, 100000);
  EXPECT_EQ(quota(), 0);
}

TEST_F(OldGroups, MayBeMountedTogether) {
  are("4:cpu,cpuacct:/a\n3:cpuset:/a\n");
  allow_old("cpu,cpuacct/a", 200000, 100000);
  allow_old("cpuset/a", 100000, 100000);
  EXPECT_EQ(quota(), 2);
}

TEST_F(OldGroups, CountAtTheRootOfAContainer) {
  are("4:cpu:/docker/7\n");
  allow_old("cpu", 400000, 100000);
  EXPECT_EQ(quota(), 4);
}

TEST_F(OldGroups, CountBesideThoseOfVersion2) {
  are("4:cpu:/a\n0::/a\n");
  allow_old("cpu/a", 300000, 100000);
  allow("a", "200000 100000");
  EXPECT_EQ(quota(), 2);
}

TEST_F(Groups, GiveAtLeastOneProcessor) {
  is_in("a");
  allow("a", "1000 100000");
  EXPECT_EQ(usable_processors(proc(), groups()), 1);
}

TEST(UsableProcessors, AreThoseOfTheScheduler) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors("/nothing", "/nothing"), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_processors("/nothing", "/nothing"), CPU_COUNT(&before));
}

}  // namespace
}  // namespace decent
