#include "decent/comm/shared_memory/arena.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../support/child_process.h"
#include "../support/refusal.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_child;
using testing::refusal;

std::string text_at(const Arena& arena, std::int64_t offset) {
  return reinterpret_cast<const char*>(arena.at(offset));
}

void write_at(const Arena& arena, std::int64_t offset, const std::string& text) {
  std::memcpy(arena.at(offset), text.c_str(), text.size() + 1);
}

std::string own_file(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

// Of the file behind an arena of this process.
struct stat file_of(const Arena& arena) {
  struct stat status {};
  EXPECT_EQ(::stat(own_file(arena.address().descriptor).c_str(), &status), 0);
  return status;
}

std::set<std::string> open_descriptors() {
  std::set<std::string> descriptors;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of this very iteration
    const auto target = std::filesystem::read_symlink(entry, gone);
    if (!gone) descriptors.insert(entry.path().filename().string() + " " + target.string());
  }
  return descriptors;
}

std::string refusal_to_open(const ArenaAddress& address) {
  return refusal([&] { Arena::open(address); });
}

std::string error_text(int error) { return std::generic_category().message(error); }

void limit(decltype(RLIMIT_AS) resource, rlim_t most) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = most;
  if (::setrlimit(resource, &limit) != 0) throw std::runtime_error("no limit");
}

// Of this process, and a little more.
rlim_t addresses_in_use() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return static_cast<rlim_t>(pages * Arena::kPage + (64 << 20));
}

TEST(Arena, IsMemoryThatAnotherProcessMapsThroughProc) {
  const auto arena = Arena::create();
  const std::int64_t offset = arena->grow(100);
  write_at(*arena, offset, "from the parent");
  EXPECT_EQ(in_child([&] {
              const auto theirs = Arena::open(arena->address());
              if (theirs->at(offset) == arena->at(offset)) return std::string("the same mapping");
              const std::string read = text_at(*theirs, offset);
              write_at(*theirs, offset, "from the child");
              return read;
            }),
            "from the parent");
  EXPECT_EQ(text_at(*arena, offset), "from the child");
}

TEST(Arena, GrowsUnderThoseWhoMapIt) {
  const auto arena = Arena::create();
  arena->grow(1);
  const auto opened = Arena::open(arena->address());
  const std::int64_t offset = arena->grow(10 << 20);
  write_at(*arena, offset + (10 << 20) - 8, "grown");
  EXPECT_EQ(text_at(*opened, offset + (10 << 20) - 8), "grown");
}

TEST(Arena, GrowsByWholePagesOfZeros) {
  const auto arena = Arena::create();
  EXPECT_EQ(arena->grow(1), 0);
  EXPECT_EQ(arena->grow(Arena::kPage), Arena::kPage);
  EXPECT_EQ(arena->grow(Arena::kPage + 1), 2 * Arena::kPage);
  EXPECT_EQ(arena->grow(1), 4 * Arena::kPage);
  const std::byte* const begin = arena->at(0);
  EXPECT_EQ(std::count(begin, begin + 5 * Arena::kPage, std::byte{0}), 5 * Arena::kPage);
}

TEST(Arena, HasTheMemoryBeforeItIsWritten) {
  const auto arena = Arena::create();
  const auto before = file_of(*arena).st_blocks;
  arena->grow(8 << 20);
  EXPECT_GE((file_of(*arena).st_blocks - before) * 512, 8 << 20);
}

TEST(Arena, GrowsForSeveralThreadsAtOnce) {
  const auto arena = Arena::create();
  std::vector<std::vector<std::int64_t>> offsets(4);
  std::vector<std::thread> threads;
  for (auto& own : offsets)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) own.push_back(arena->grow(Arena::kPage));
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::int64_t> different;
  for (const auto& own : offsets) different.insert(own.begin(), own.end());
  EXPECT_EQ(different.size(), 400U);
  EXPECT_EQ(*different.rbegin(), 399 * Arena::kPage);
}

TEST(Arena, RefusesMoreMemoryThanTheMachineHas) {
  const auto arena = Arena::create();
  const std::int64_t first = arena->grow(1);
  EXPECT_THAT(
      refusal([&] { arena->grow(arena->address().bytes); }),
      AllOf(HasSubstr("no memory for "), HasSubstr("MiB that the workers of this machine")));
  EXPECT_EQ(arena->grow(1), first + Arena::kPage) << "what was refused was not taken";
}

TEST(Arena, KnowsWhatLiesInIt) {
  const auto arena = Arena::create();
  const int elsewhere = 0;
  arena->grow(100);
  EXPECT_EQ(arena->offset_of(arena->at(0)), 0);
  EXPECT_EQ(arena->offset_of(arena->at(99)), 99);
  EXPECT_EQ(arena->offset_of(arena->at(0) - 1), -1);
  EXPECT_EQ(arena->offset_of(arena->at(arena->address().bytes)), -1);
  EXPECT_EQ(arena->offset_of(&elsewhere), -1);
}

TEST(Arena, IsNotOpenedWithAnotherToken) {
  const auto arena = Arena::create();
  ArenaAddress address = arena->address();
  address.token.back() = address.token.back() == '0' ? '1' : '0';
  EXPECT_THAT(refusal_to_open(address), HasSubstr("is not the memory of another worker"));
}

// What opening the number of an arena says that is gone, where `other` has that number now.
std::string refusal_after_arena(const Socket& other) {
  auto arena = Arena::create();
  const ArenaAddress address = arena->address();
  arena.reset();
  EXPECT_THAT(refusal_to_open(address), HasSubstr(error_text(ENOENT)));
  const Socket there(::dup2(other.descriptor(), address.descriptor));
  return refusal_to_open(address);
}

TEST(Arena, IsNotMistakenForWhatHasItsNumberNow) {
  const std::string is_not = "is not the memory of another worker";
  const Socket empty(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(refusal_after_arena(empty), HasSubstr(is_not));
  const auto arena = Arena::create();
  const Socket memory(::open(own_file(arena->address().descriptor).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_THAT(refusal_after_arena(memory), HasSubstr(is_not));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Socket out(ends[0]), in(ends[1]);
  EXPECT_THAT(refusal_after_arena(in), HasSubstr(is_not));
  EXPECT_THAT(refusal_after_arena(listen_on("127.0.0.1")), HasSubstr(error_text(ENXIO)));
}

TEST(Arena, IsNotOpenedAfterItsProcessHasEnded) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Socket out(ends[0]), in(ends[1]);
  in_child([&] {
    const auto arena = Arena::create();
    const std::string text = std::to_string(arena->address().process) + " " +
                             std::to_string(arena->address().descriptor) + " " +
                             arena->address().token;
    return ::write(in.descriptor(), text.data(), text.size()) > 0 ? "" : "error";
  });
  char text[100] = {};
  ASSERT_GT(::read(out.descriptor(), text, sizeof text - 1), 0);
  ArenaAddress address;
  address.bytes = 1 << 20;
  std::istringstream(text) >> address.process >> address.descriptor >> address.token;
  EXPECT_THAT(refusal_to_open(address), HasSubstr(error_text(ENOENT)));
}

TEST(Arena, IsForOneUser) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto arena = Arena::create();
  EXPECT_THAT(in_child([&] {
                constexpr uid_t kOther = 65534;
                if (::setgid(kOther) != 0 || ::setuid(kOther) != 0) return std::string("no change");
                return refusal_to_open(arena->address());
              }),
              HasSubstr(error_text(EACCES)));
}

TEST(Arena, CannotBeMadeSmallerByThoseWhoMapIt) {
  const auto arena = Arena::create();
  const std::int64_t offset = arena->grow(1 << 20);
  write_at(*arena, offset, "still there");
  EXPECT_EQ(in_child([&] {
              const Socket file(::open(("/proc/" + std::to_string(arena->address().process) +
                                        "/fd/" + std::to_string(arena->address().descriptor))
                                           .c_str(),
                                       O_RDWR));
              if (!file.open()) return std::string("not opened");
              const bool cut = ::ftruncate(file.descriptor(), 0) == 0;
              return cut ? std::string("cut") : error_text(errno);
            }),
            error_text(EPERM));
  EXPECT_EQ(text_at(*arena, offset), "still there");
}

TEST(Arena, LeavesNoDescriptor) {
  const auto before = open_descriptors();
  {
    const auto arena = Arena::create();
    const auto with_one = open_descriptors();
    EXPECT_EQ(with_one.size(), before.size() + 1);
    const auto opened = Arena::open(arena->address());
    EXPECT_EQ(open_descriptors(), with_one);
    ArenaAddress wrong = arena->address();
    wrong.token = "another";
    EXPECT_THROW(Arena::open(wrong), UserError);
    EXPECT_EQ(open_descriptors(), with_one);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Arena, LeavesNoAddresses) {
  const auto mapped = [] {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * Arena::kPage;
  };
  const auto before = mapped();
  std::int64_t bytes = 0;
  {
    const auto arena = Arena::create();
    const auto opened = Arena::open(arena->address());
    bytes = arena->address().bytes;
    EXPECT_GE(mapped(), before + 2 * bytes);
  }
  EXPECT_LT(mapped(), before + bytes);
}

TEST(Arena, SaysThatFilesAreLimited) {
  EXPECT_EQ(in_child([] {
              limit(RLIMIT_FSIZE, 1 << 30);
              return refusal([] { Arena::create(); });
            }),
            "the size of files is limited (ulimit -f), and shared memory counts as a file");
}

TEST(Arena, SaysThatAddressesAreLimited) {
  const auto arena = Arena::create();
  const std::string message = "error: shared memory cannot be mapped: " + error_text(ENOMEM);
  const auto limited = [](const auto& act) {
    return in_child([&] {
      const auto before = open_descriptors();
      limit(RLIMIT_AS, addresses_in_use());
      try {
        act();
      } catch (const std::exception& error) {
        const bool same = open_descriptors() == before;
        return std::string(same ? "error: " : "descriptors left; ") + error.what();
      }
      return std::string("accepted");
    });
  };
  EXPECT_EQ(limited([] { Arena::create(); }), message);
  EXPECT_EQ(limited([&] { Arena::open(arena->address()); }), message);
}

TEST(Arena, SaysThatThereAreNoDescriptors) {
  EXPECT_EQ(in_child([] {
              limit(RLIMIT_NOFILE, 0);
              Arena::create();
              return std::string("accepted");
            }),
            "error: shared memory cannot be made (memfd_create): " + error_text(EMFILE));
}

}  // namespace
}  // namespace decent
