// Damaged files of torch.save and torch.jit.save, by the thousand: whatever a byte says, a file is
// read or refused. tests/cli/test_weights.py has the whole ones, as PyTorch writes them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/model/weights/formats.h"

namespace decent {
namespace {

using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Small files that PyTorch 2.11 wrote.
std::string written(const std::string& name) {
  const char* root = std::getenv("DECENT_SOURCE_DIR");
  if (root == nullptr) throw std::runtime_error("DECENT_SOURCE_DIR is not set");
  return read_text(std::filesystem::path(root) / "tests/fuzz/corpus/torch_file" / name);
}

// "read", or the message. Every byte of every tensor is touched.
std::string outcome(const std::string& bytes) {
  try {
    unsigned sum = 0;
    for (const auto& [name, tensor] : read_torch_weights(std::as_bytes(std::span(bytes)), "w.pt")) {
      for (const std::byte byte : tensor.data) sum += static_cast<unsigned>(byte);
    }
    return sum < ~0u ? "read" : "";
  } catch (const UserError& error) {
    return error.what();
  }
}

std::vector<std::string> names(const std::string& bytes) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : read_torch_weights(std::as_bytes(std::span(bytes)), "w.pt")) {
    names.push_back(name);
  }
  return names;
}

class DamagedWeights : public ::testing::TestWithParam<const char*> {};

TEST_P(DamagedWeights, AreRefusedWhereTheyAreCutShort) {
  const std::string bytes = written(GetParam());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(outcome(bytes.substr(0, size)), StartsWith("'w.pt'")) << size;
  }
}

TEST_P(DamagedWeights, AreReadOrRefusedWhateverAByteSays) {
  const std::string bytes = written(GetParam());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 9; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (bit == 8 ? 0xFF : 1 << bit));
      const std::string said = outcome(changed);
      if (said != "read") {
        EXPECT_THAT(said, StartsWith("'w.pt'")) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedWeights,
                         ::testing::Values("state_dict.pt", "mixed.pt", "checkpoint.pt", "old.pth",
                                           "scripted.pt"));

TEST(Weights, WholeFilesAreRead) {
  EXPECT_THAT(names(written("state_dict.pt")), UnorderedElementsAre("weight", "bias"));
  EXPECT_THAT(names(written("mixed.pt")), UnorderedElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(names(written("checkpoint.pt")), UnorderedElementsAre("w"));
  EXPECT_THAT(names(written("old.pth")), UnorderedElementsAre("w", "b"));
  EXPECT_THAT(names(written("scripted.pt")), UnorderedElementsAre("n.w", "n.b", "b"));
}

TEST(Weights, TensorsAreWhatPyTorchWrote) {
  const std::string bytes = written("mixed.pt");
  const StoredTensors tensors = read_torch_weights(std::as_bytes(std::span(bytes)), "w.pt");
  EXPECT_EQ(tensors.at("a").dtype, DType::float16);
  EXPECT_EQ(tensors.at("b").strides, (std::vector<std::int64_t>{1, 2}));  // transposed
  EXPECT_EQ(tensors.at("c").dtype, DType::boolean);
  EXPECT_TRUE(tensors.at("c").shape.empty());
  EXPECT_EQ(tensors.at("d").dtype, DType::bfloat16);
  EXPECT_EQ(tensors.at("d").data.size(), 4u);  // two of the three elements of its storage
  EXPECT_EQ(tensors.at("e").dtype, DType::float32);
}

}  // namespace
}  // namespace decent
