#pragma once
// Archives in a folder of their own, for tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "archive_bytes.h"
#include "decent/core/file.h"
#include "decent/pt2/archive/read.h"

namespace decent::pt2::testing {

class ArchiveFiles : public ::testing::Test {
 public:
  std::filesystem::path put(const std::string& name, std::string_view content) {
    const std::filesystem::path path = folder.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string get(const std::string& name) { return read_text(folder.path() / name); }

  /// Reads "m.pt2" of these bytes.
  Archive read(std::string_view content) { return read_archive(put("m.pt2", content)); }
  Archive read(const RecordTexts& records) { return read(archive_bytes(records)); }

  /// What reading it is refused with, after the file's name.
  std::string refusal_of(std::string_view content) {
    const std::string message = decent::testing::refusal([&] { read(content); });
    const std::string begin = "model '" + (folder.path() / "m.pt2").string() + "'";
    if (!message.starts_with(begin)) return message;
    return message.substr(begin.size());
  }
  std::string refusal_of(const RecordTexts& records) { return refusal_of(archive_bytes(records)); }

  decent::testing::TemporaryFolder folder;
};

}  // namespace decent::pt2::testing
