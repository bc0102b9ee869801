// docs/recipe.md holds the reference that the schema gives.

#include "decent/config/reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "decent/config/loader.h"
#include "decent/core/file.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

// At the start of the process, before other tests register names of their own.
const config::Names kNames = recipe_names();

const std::string kBegin = "<!-- keys: begin -->\n";
const std::string kEnd = "\n<!-- keys: end -->";

std::filesystem::path document_path() {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  return root == nullptr ? "" : std::filesystem::path(root) / "docs" / "recipe.md";
}

// The document with what stands between the marks replaced by the reference.
std::string updated(const std::string& document) {
  const std::size_t begin = document.find(kBegin);
  const std::size_t end = document.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return document;
  return document.substr(0, begin + kBegin.size()) + recipe_reference(kNames) +
         document.substr(end);
}

TEST(Reference, IsWhatTheDocumentSays) {
  const std::filesystem::path path = document_path();
  ASSERT_FALSE(path.empty()) << "set DECENT_SOURCE_DIR to the root of the repository";
  if (std::getenv("DECENT_UPDATE_DOCS") != nullptr) write_file(path, updated(read_text(path)));
  EXPECT_NE(read_text(path).find(kBegin + recipe_reference(kNames) + kEnd), std::string::npos)
      << path << " is out of date; run this test with DECENT_UPDATE_DOCS=1 to bring it up to date";
}

// The example that opens the document is a recipe that loads.
TEST(Reference, TheExampleLoads) {
  const std::string document = read_text(document_path());
  const std::string fence = "```yaml\n";
  const std::size_t begin = document.find(fence) + fence.size();
  const std::size_t end = document.find("```", begin);
  ASSERT_NE(end, std::string::npos);
  EXPECT_NO_THROW(parse_recipe(document.substr(begin, end - begin), "run.yaml", {}, kNames));
}

}  // namespace
}  // namespace decent
