#pragma once
// Models in a folder of their own, for tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../support/refusal.h"
#include "../support/temporary_folder.h"
#include "decent/core/file.h"
#include "decent/onnx/format/read.h"
#include "onnx_bytes.h"

namespace decent::onnx::file_bytes {

class ModelFiles : public ::testing::Test {
 public:
  /// Writes a file into the folder.
  std::filesystem::path put(const std::string& name, std::string_view content) {
    const std::filesystem::path path = folder.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string get(const std::string& name) { return read_text(folder.path() / name); }

  /// Reads "m.onnx" of these bytes.
  Model read(std::string_view content) { return read_model(put("m.onnx", content)); }
  /// What reading it is refused with, after the file's name.
  std::string refusal_of(std::string_view content) {
    const std::string message = decent::testing::refusal([&] { read(content); });
    const std::string begin = "model '" + (folder.path() / "m.onnx").string() + "': ";
    if (!message.starts_with(begin)) return message;
    return message.substr(begin.size());
  }

  decent::testing::TemporaryFolder folder;
};

/// Elements as numbers of a type.
template <typename T>
std::vector<T> as(std::span<const std::byte> elements) {
  std::vector<T> values(elements.size() / sizeof(T));
  std::memcpy(values.data(), elements.data(), elements.size());
  return values;
}

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const std::span<const std::byte> all = std::as_bytes(std::span(text.data(), text.size()));
  return {all.begin(), all.end()};
}

}  // namespace decent::onnx::file_bytes
