// TorchScript methods of operators/*.py: what the program holds is what the files say.
// tests/unit/model/test_onnx_helpers.cpp compiles them.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "decent/onnx/translate/helpers.h"

namespace decent::onnx {
namespace {

using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Texts = std::map<std::string, std::string>;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Texts files_of_the_sources() {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  Texts texts;
  if (root == nullptr) return texts;
  const auto folder = std::filesystem::path(root) / "lib" / "decent" / "onnx" / "operators";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& path = file.path();
    if (path.extension() == ".py") texts.emplace(path.filename(), text_of(path));
  }
  return texts;
}

TEST(Helpers, AreTheFilesBesideTheOperators) {
  const Texts files = files_of_the_sources();
  if (files.empty()) GTEST_SKIP() << "DECENT_SOURCE_DIR is not set";
  Texts embedded;
  for (const HelperFile& file : helper_files()) embedded.emplace(file.name, file.text);
  EXPECT_EQ(embedded, files);
}

TEST(Helpers, AreAllFunctionsOfTheFiles) {
  std::multiset<std::string> defined;
  for (const HelperFile& file : helper_files()) {
    std::istringstream lines{std::string(file.text)};
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("def ")) defined.insert(line.substr(4, line.find('(') - 4));
  }
  EXPECT_GT(defined.size(), 90U);
  EXPECT_THAT(all_helper_names(), ElementsAreArray(defined));  // none twice
}

TEST(Helpers, EndWithTheirLastLine) {
  for (const std::string& name : all_helper_names()) {
    const std::string source = helper_source(name);
    EXPECT_THAT(source, StartsWith("def " + name + "(self, "));
    EXPECT_THAT(source, EndsWith("\n"));
    EXPECT_THAT(source, Not(EndsWith("\n\n")));
    EXPECT_THAT(source, Not(HasSubstr("\n#"))) << "the comment of the next";
  }
}

TEST(Helpers, ComeWithWhatTheyCallBeforeThem) {
  EXPECT_EQ(helper_methods({"_range"}), helper_source("_quotient") + helper_source("_range"));
  EXPECT_EQ(helper_methods({"_window_padding", "_ceil_padding"}),
            helper_source("_quotient") + helper_source("_ceil_padding") +
                helper_source("_window_padding"));
}

// A division of integers by 0 ends a TorchScript program with a signal.
TEST(Helpers, DivideIntegersThroughTheMethodThatLooksAtTheDivisor) {
  std::size_t lines = 0;
  for (const std::string& name : all_helper_names()) {
    std::istringstream source(helper_source(name));
    for (std::string line; std::getline(source, line); ++lines) {
      const std::size_t code = line.find('#');
      line = line.substr(0, code);
      for (const std::string sign : {" // ", " % "}) {
        const std::size_t at = line.find(sign);
        if (at == std::string::npos || name == "_quotient" || name == "_float_range") continue;
        const std::string divisor = line.substr(at + sign.size(), 2);
        EXPECT_TRUE(divisor == "2" || divisor == "2 " || divisor == "2)" || divisor == "2,")
            << name << ": " << line;
      }
    }
  }
  EXPECT_GT(lines, 500U);
}

}  // namespace
}  // namespace decent::onnx
