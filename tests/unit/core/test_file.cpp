#include "decent/core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "../support/temporary_folder.h"
#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::HasSubstr;

void put(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

template <typename Exception, typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MappedFile, NamesItselfWhereItWasTruncated) {
  const testing::TemporaryFolder folder;
  constexpr std::size_t kSize = 1'000'000;
  put(folder / "file", std::string(kSize, 'x'));
  const MappedFile file(folder / "file");
  std::array<std::byte, 4> bytes{};
  std::filesystem::resize_file(folder / "file", kSize / 2);
  file.copy(kSize / 2 - 4, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), "xxxx", 4), 0);
  for (int time = 0; time < 3; ++time) {  // the signal must come again each time
    EXPECT_THAT(message_of<UserError>([&] { file.copy(kSize - 4, bytes); }),
                HasSubstr("file' has lost its bytes from 999996 on: it was truncated while"));
  }
  file.copy(0, bytes);
}

TEST(MappedFile, OfSeveralThreadsOnlyTheOneThatTouchesWhatIsGoneFails) {
  const testing::TemporaryFolder folder;
  constexpr std::size_t kSize = 1'000'000;
  put(folder / "file", std::string(kSize, 'x'));
  const MappedFile file(folder / "file");
  std::filesystem::resize_file(folder / "file", kSize / 2);
  std::atomic<int> lost = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::array<std::byte, 64> bytes{};
      for (int round = 0; round < 200; ++round) {
        try {
          file.copy(i % 2 == 0 ? 0 : kSize - 64, bytes);
        } catch (const UserError&) {
          ++lost;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 400);
}

// Whoever touches lost memory elsewhere is not helped, and must not loop for ever.
TEST(MappedFileDeathTest, OtherTouchesOfWhatIsGoneEndTheProcess) {
  const testing::TemporaryFolder folder;
  put(folder / "file", std::string(100'000, 'x'));
  const MappedFile file(folder / "file");
  std::array<std::byte, 4> bytes{};
  file.copy(0, bytes);
  std::filesystem::resize_file(folder / "file", 0);
  const volatile std::byte* gone = file.bytes().data() + 50'000;
  EXPECT_EXIT(static_cast<void>(*gone), ::testing::KilledBySignal(SIGBUS), "");
}

TEST(MappedFile, RefusesAPipe) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<UserError>([&] { MappedFile(folder / "pipe"); }),
              HasSubstr("pipe': not a file"));
}

TEST(MappedFile, GivesTheBytesOfTheFile) {
  const testing::TemporaryFolder folder;
  const std::string content("a\0b\xFF\n", 5);
  put(folder / "file", content);
  const MappedFile file(folder / "file");
  ASSERT_EQ(file.bytes().size(), content.size());
  EXPECT_EQ(std::memcmp(file.bytes().data(), content.data(), content.size()), 0);
  EXPECT_EQ(file.path(), folder / "file");
}

TEST(MappedFile, MapsAnEmptyFile) {
  const testing::TemporaryFolder folder;
  put(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFile, MovesItsMapping) {
  const testing::TemporaryFolder folder;
  put(folder / "one", "one");
  put(folder / "three", "three");
  MappedFile file(folder / "one");
  MappedFile moved(std::move(file));
  EXPECT_EQ(moved.bytes().size(), 3U);
  moved = MappedFile(folder / "three");
  EXPECT_EQ(moved.bytes().size(), 5U);
  EXPECT_EQ(moved.path(), folder / "three");
}

TEST(MappedFile, NamesAFileThatCannotBeRead) {
  const testing::TemporaryFolder folder;
  const auto open_missing = [&] { MappedFile file(folder / "missing"); };
  EXPECT_THAT(message_of<UserError>(open_missing), HasSubstr("missing': No such file"));
  const auto open_folder = [&] { MappedFile file(folder.path()); };
  EXPECT_THAT(message_of<UserError>(open_folder), HasSubstr("not a file"));
}

TEST(ReadText, ReadsWhatWasWritten) {
  const testing::TemporaryFolder folder;
  write_file(folder / "text", "name: digits\n");
  EXPECT_EQ(read_text(folder / "text"), "name: digits\n");
  write_file(folder / "text", "");
  EXPECT_EQ(read_text(folder / "text"), "");
}

TEST(WriteFile, JoinsPiecesAndReplacesWhatWasThere) {
  const testing::TemporaryFolder folder;
  write_file(folder / "file", "a longer content than the next");
  const std::array<std::string_view, 3> pieces = {"head", "", std::string_view("\0tail", 5)};
  write_file(folder / "file", pieces);
  EXPECT_EQ(read_text(folder / "file"), std::string("head\0tail", 9));
  EXPECT_EQ(entries_in(folder.path()), 1U);  // no temporary file stays
}

TEST(WriteFile, NamesAFolderThatIsNotThere) {
  const testing::TemporaryFolder folder;
  const auto write = [&] { write_file(folder / "missing/file", "x"); };
  EXPECT_THAT(message_of<WriteError>(write), HasSubstr("missing/file': No such file"));
  EXPECT_EQ(entries_in(folder.path()), 0U);
}

TEST(WriteFile, LeavesTheTargetAndNoTemporaryFileWhereItCannotRename) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "target/inside");
  EXPECT_THROW(write_file(folder / "target", "x"), WriteError);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "target/inside"));
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

// What stands under a name that a temporary file might have is somebody's.
TEST(WriteFile, TouchesNoOtherFile) {
  const testing::TemporaryFolder folder;
  put(folder / "elsewhere", "mine");
  std::filesystem::create_symlink(folder / "elsewhere", folder / "file.tmp");
  put(folder / "other.tmp", "mine, too");
  write_file(folder / "file", "x");
  write_file(folder / "other", "y");
  EXPECT_EQ(read_text(folder / "elsewhere"), "mine");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "file.tmp"));
  EXPECT_EQ(read_text(folder / "other.tmp"), "mine, too");
  EXPECT_EQ(entries_in(folder.path()), 5U);
}

TEST(AtomicFile, HasATemporaryNameThatIsKnownAgain) {
  const testing::TemporaryFolder folder;
  AtomicFile file(folder / "model.pt");
  AtomicFile same(folder / "model.pt");  // of another process, say
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_TRUE(is_temporary_of(entry.path().filename().string(), "model.pt")) << entry.path();
    EXPECT_FALSE(is_temporary_of(entry.path().filename().string(), "model"));
  }
  EXPECT_EQ(entries_in(folder.path()), 2U);
  for (const char* name :
       {"model.pt", "model.pt.tmp", "model.pt.0123456.tmp", "model.pt-01234567.tmp",
        "model.pt.0123456g.tmp", "model.pt.01234567.bak"})
    EXPECT_FALSE(is_temporary_of(name, "model.pt")) << name;
}

TEST(AtomicFile, AsANewOneReplacesNothing) {
  const testing::TemporaryFolder folder;
  put(folder / "file", "mine");
  {
    AtomicFile file(folder / "file");
    file.write("x");
    file.sync();
    EXPECT_THAT(message_of<WriteError>([&] { file.rename_as_new(); }), HasSubstr("File exists"));
  }
  EXPECT_EQ(read_text(folder / "file"), "mine");
  AtomicFile file(folder / "new");
  file.write("x");
  file.sync();
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  file.rename_as_new();
  EXPECT_EQ(read_text(folder / "new"), "x");
  EXPECT_EQ(entries_in(folder.path()), 2U);
}

TEST(CreateFolders, CreatesParentsAndAcceptsWhatIsThere) {
  const testing::TemporaryFolder folder;
  create_folders(folder / "a/b/c");
  create_folders(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
}

TEST(CreateFolders, FailsBelowAFile) {
  const testing::TemporaryFolder folder;
  put(folder / "file", "");
  const auto create = [&] { create_folders(folder / "file/sub"); };
  EXPECT_THAT(message_of<WriteError>(create), HasSubstr("file/sub'"));
}

TEST(Errors, CarryTheirExitCodes) {
  EXPECT_EQ(UserError("").code(), ExitCode::user_error);
  EXPECT_EQ(PeerLost("").code(), ExitCode::peer_lost);
  EXPECT_EQ(WriteError("").code(), ExitCode::write_failed);
}

}  // namespace
}  // namespace decent
