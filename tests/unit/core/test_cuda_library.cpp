#include "decent/core/cuda_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "../support/child_process.h"
#include "decent/core/error.h"
#include "decent/core/version.h"

namespace decent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_child;
using ::testing::StartsWith;

// What a program says that is told to use `file`; each in a process of its own, as the library is
// loaded once.
std::string problem_with(const std::string& file) {
  return in_child([&]() -> std::string {
    ::setenv("DECENT_CUDA_LIBRARY", file.c_str(), 1);
    try {
      cuda_symbol("decent_cuda_build_id");
    } catch (const UserError& error) {
      return error.what();
    }
    return "loaded";
  });
}

#if DECENT_BUILT_WITH_CUDA

TEST(CudaLibrary, SaysThatTheNamedFileIsNotThere) {
  EXPECT_EQ(problem_with("/nowhere/at/all.so"),
            "DECENT_CUDA_LIBRARY names '/nowhere/at/all.so', which is not there");
}

TEST(CudaLibrary, PassesOnWhatTheLoaderSays) {
  const auto file =
      fs::temp_directory_path() / ("decent-garbage-" + std::to_string(::getpid()) + ".so");
  std::ofstream(file) << "this is no library";
  EXPECT_THAT(problem_with(file), AllOf(StartsWith("the library for GPUs cannot be loaded: "),
                                        HasSubstr(file.string()), HasSubstr("file too short")));
  fs::remove(file);
}

TEST(CudaLibrary, RefusesAnotherBuild) {
  EXPECT_EQ(problem_with(DECENT_OTHER_BUILD),
            "'" DECENT_OTHER_BUILD "' is of build another-build, the program of build " +
                std::string(build_id()) + ": build or install both at once");
}

TEST(CudaLibrary, RefusesAnotherLibrary) {
  EXPECT_EQ(problem_with(DECENT_NO_CUDA_LIBRARY),
            "'" DECENT_NO_CUDA_LIBRARY "' is not decent-train's library for GPUs");
}

// This program lies beside the library.
TEST(CudaLibrary, IsFoundBesideTheProgram) { EXPECT_EQ(problem_with(""), "loaded"); }

// For the copy of this program below.
TEST(CudaLibrary, DISABLED_PrintsTheProblem) {
  std::printf("problem: %s\n", problem_with("").c_str());
}

// A folder with a copy of this program in bin/, as an installed package has it.
class Installed : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(prefix_ / "bin");
    fs::create_directories(prefix_ / "lib");
    fs::copy_file(fs::read_symlink("/proc/self/exe"), program());
  }
  void TearDown() override { fs::remove_all(prefix_); }

  fs::path program() const { return prefix_ / "bin" / "program"; }

  std::string problem() const {
    const std::string command = program().string() +
                                " --gtest_also_run_disabled_tests "
                                "--gtest_filter=CudaLibrary.DISABLED_PrintsTheProblem";
    FILE* out = ::popen(command.c_str(), "r");
    std::string text;
    char buffer[4096];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, out)) text.append(buffer, n);
    ::pclose(out);
    const std::size_t begin = text.find("problem: ") + 9;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  fs::path prefix_ = fs::temp_directory_path() / ("decent-prefix-" + std::to_string(::getpid()));
};

TEST_F(Installed, ProgramSaysWhereItLooked) {
  EXPECT_EQ(
      problem(),
      "libdecent_cuda.so, the library for GPUs, was not found in " + (prefix_ / "bin").string() +
          ", " + (prefix_ / "lib").string() +
          ", the folders of the system's loader. The variable DECENT_CUDA_LIBRARY may name it");
}

TEST_F(Installed, ProgramFindsItInLib) {
  const fs::path built = fs::read_symlink("/proc/self/exe").parent_path() / "libdecent_cuda.so";
  fs::create_symlink(built, prefix_ / "lib" / "libdecent_cuda.so");
  EXPECT_EQ(problem(), "loaded");
}

TEST(CudaLibrary, GivesEveryThreadTheSame) {
  const std::string result = in_child([] {
    std::vector<void*> found(8);
    std::vector<std::thread> threads;
    for (void*& address : found) {
      threads.emplace_back([&address] { address = cuda_symbol("decent_cuda_build_id"); });
    }
    for (std::thread& thread : threads) thread.join();
    for (void* address : found) {
      if (address != found[0]) return "different";
    }
    return found[0] == nullptr ? "null" : "same";
  });
  EXPECT_EQ(result, "same");
}

TEST(CudaLibrary, LacksWhatNobodyExports) {
  EXPECT_EQ(in_child([]() -> std::string {
              cuda_symbol("decent_cuda_coffee");
              return {};
            }),
            "error: libdecent_cuda.so has no symbol decent_cuda_coffee");
}

// A problem is the same on every call.
TEST(CudaLibrary, IsTriedOnce) {
  const std::string result = in_child([]() -> std::string {
    ::setenv("DECENT_CUDA_LIBRARY", "/nowhere.so", 1);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(cuda_symbol("decent_cuda_build_id"), UserError);
      ::unsetenv("DECENT_CUDA_LIBRARY");
    }
    return ::testing::Test::HasFailure() ? "loaded" : "refused";
  });
  EXPECT_EQ(result, "refused");
}

#else

TEST(CudaLibrary, SaysThatThisProgramHasNone) {
  EXPECT_EQ(problem_with(""), "this program was built without CUDA");
}

#endif

}  // namespace
}  // namespace decent
