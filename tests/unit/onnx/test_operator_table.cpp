// The table of operators: its order, and docs/onnx.md, which shows it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "decent/core/file.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

const std::string kBegin = "<!-- operators: begin -->\n";
const std::string kEnd = "\n<!-- operators: end -->";

std::filesystem::path document_path() {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  return root == nullptr ? "" : std::filesystem::path(root) / "docs" / "onnx.md";
}

// The oldest version of each.
std::string table() {
  std::map<std::string, std::int64_t> first;
  for (const Operator& each : operator_table()) {
    const std::int64_t version = std::max(each.first_opset, kOldestOpset);
    const auto [entry, is_new] = first.emplace(each.name, version);
    if (!is_new) entry->second = std::min(entry->second, version);
  }
  std::map<std::int64_t, std::string> by_version;
  for (const auto& [name, version] : first) {
    std::string& names = by_version[version];
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string text = "| from version | " + std::to_string(first.size()) + " operators |\n|---|---|";
  for (const auto& [version, names] : by_version)
    text += "\n| " + std::to_string(version) + " | " + names + " |";
  return text;
}

std::string updated(const std::string& document) {
  const std::size_t begin = document.find(kBegin);
  const std::size_t end = document.find(kEnd.substr(1));
  if (begin == std::string::npos || end == std::string::npos) return document;
  return document.substr(0, begin + kBegin.size()) + table() + "\n" + document.substr(end);
}

TEST(OperatorTable, IsWhatTheDocumentSays) {
  const std::filesystem::path path = document_path();
  ASSERT_FALSE(path.empty()) << "set DECENT_SOURCE_DIR to the root of the repository";
  if (std::getenv("DECENT_UPDATE_DOCS") != nullptr) write_file(path, updated(read_text(path)));
  EXPECT_NE(read_text(path).find(kBegin + table() + kEnd), std::string::npos)
      << path << " is out of date; run this test with DECENT_UPDATE_DOCS=1 to bring it up to date";
}

TEST(OperatorTable, VersionsOfAnOperatorDoNotOverlap) {
  const std::vector<Operator>& all = operator_table();
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].name != all[i - 1].name) continue;
    const Operator& older = all[i].first_opset < all[i - 1].first_opset ? all[i] : all[i - 1];
    const Operator& newer = &older == &all[i] ? all[i - 1] : all[i];
    EXPECT_LT(older.last_opset, newer.first_opset) << older.name;
  }
}

TEST(OperatorTable, FindsTheVersion) {
  EXPECT_NE(find_operator("Relu", 9), nullptr);
  EXPECT_EQ(find_operator("LayerNormalization", 16), nullptr);
  EXPECT_NE(find_operator("LayerNormalization", 17), nullptr);
  EXPECT_EQ(find_operator("Relux", 17), nullptr);
}

}  // namespace
}  // namespace decent::onnx
