#include "decent/model/torchscript/save.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include "../support/modules.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/model/safetensors/save.h"

namespace decent {
namespace {

using testing::Module;
using testing::Saved;
using testing::TemporaryFolder;

// A model in training: every parameter a view of one large flat tensor, memory order kept.
class InTraining {
 public:
  explicit InTraining(const Module& module) : model(Saved(module).load()) {
    std::int64_t offset = 100;
    for (const auto& entry : model.parameters()) {
      at::Tensor parameter = entry.second;
      const at::Tensor view = bucket.as_strided(parameter.sizes(), parameter.strides(), offset);
      view.copy_(parameter.detach());
      parameter.set_data(view);
      offset += parameter.numel() + 32;
    }
    model.module().train();
  }

  bool still_in_bucket() const {
    for (const auto& entry : model.parameters()) {
      if (!entry.second.storage().is_alias_of(bucket.storage())) return false;
    }
    return true;
  }

  at::Tensor bucket = at::zeros({1 << 20}, at::kFloat);  // 4 MiB
  Model model;
};

// Parameters in other memory orders than row-major, special values, tied names and buffers of
// several types.
Module varied_module() {
  Module module = testing::small_module();
  module.register_parameter("transposed", testing::weight({4, 3}).detach().t().requires_grad_(),
                            false);
  const at::Tensor special = at::full({3}, std::nan(""), at::kFloat);
  special[1].fill_(-0.0);
  special[2].fill_(-HUGE_VAL);
  module.register_parameter("special", special.requires_grad_(), false);
  module.register_parameter("tied", module.attr("w").toTensor(), false);
  module.register_buffer("mask", at::full({3}, true, at::kBool));
  module.register_buffer("half", at::full({2}, 0.1, at::kHalf));
  module.register_buffer("strided", at::arange(6, at::kDouble).view({2, 3}).t());
  return module;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(SaveTorchScript, LoadsAgainEqual) {
  InTraining training(varied_module());
  const TemporaryFolder folder;
  save_torchscript(training.model, folder / "out.pt");
  Model loaded = open_model(folder / "out.pt");
  ASSERT_EQ(loaded.state().size(), training.model.state().size());
  for (std::size_t i = 0; i < loaded.state().size(); ++i) {
    EXPECT_EQ(loaded.state()[i].first, training.model.state()[i].first);
    EXPECT_TRUE(same_bytes(loaded.state()[i].second, training.model.state()[i].second))
        << loaded.state()[i].first;
  }
  EXPECT_EQ(loaded.parameters().size(), training.model.parameters().size());
  EXPECT_FALSE(loaded.module().is_training());
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(SaveTorchScript, WritesNoMoreThanTheTensors) {
  InTraining training(varied_module());
  const TemporaryFolder folder;
  save_torchscript(training.model, folder / "out.pt");
  EXPECT_LT(std::filesystem::file_size(folder / "out.pt"), 40000U);  // the bucket has 4 MiB
  Model loaded = open_model(folder / "out.pt");
  for (const auto& [name, parameter] : loaded.parameters()) {
    EXPECT_EQ(parameter.storage().nbytes(), parameter.nbytes()) << name;
  }
}

TEST(SaveTorchScript, LeavesTheModelInTraining) {
  InTraining training(varied_module());
  const at::Tensor before = training.bucket.clone();
  const TemporaryFolder folder;
  save_torchscript(training.model, folder / "out.pt");
  EXPECT_TRUE(training.still_in_bucket());
  EXPECT_TRUE(training.model.module().is_training());
  EXPECT_TRUE(same_bytes(training.bucket, before));
  training.bucket.fill_(5);
  for (const auto& [name, parameter] : training.model.parameters()) {
    EXPECT_TRUE(at::equal(parameter, at::full_like(parameter, 5))) << name;
    EXPECT_TRUE(parameter.requires_grad() && parameter.is_leaf()) << name;
  }
  training.model.module().eval();
  save_torchscript(training.model, folder / "out.pt");
  EXPECT_FALSE(training.model.module().is_training());
}

TEST(SaveTorchScript, ReplacesAnOlderFile) {
  InTraining training(testing::small_module());
  const TemporaryFolder folder;
  write_file(folder / "out.pt", "old");
  save_torchscript(training.model, folder / "out.pt");
  EXPECT_NO_THROW(open_model(folder / "out.pt"));
}

TEST(SaveSafetensors, HoldsEveryNameRowMajor) {
  InTraining training(varied_module());
  const TemporaryFolder folder;
  save_safetensors(training.model, folder / "out.safetensors");
  const MappedFile file(folder / "out.safetensors");
  const Safetensors parsed = parse_safetensors(file.bytes(), "out");
  ASSERT_EQ(parsed.tensors.size(), training.model.state().size());
  for (const auto& [name, tensor] : training.model.state()) {
    const TensorView* view = parsed.find(name);
    ASSERT_NE(view, nullptr) << name;
    EXPECT_EQ(view->shape, tensor.sizes().vec()) << name;
    EXPECT_EQ(size_of(view->dtype), tensor.element_size()) << name;
    const at::Tensor rows = tensor.contiguous();
    ASSERT_EQ(view->data.size(), rows.nbytes()) << name;
    EXPECT_EQ(std::memcmp(view->data.data(), rows.const_data_ptr(), rows.nbytes()), 0) << name;
  }
  EXPECT_EQ(parsed.find("mask")->dtype, DType::boolean);
  EXPECT_EQ(parsed.find("half")->dtype, DType::float16);
  EXPECT_EQ(parsed.find("count")->dtype, DType::int64);
  EXPECT_EQ(parsed.find("transposed")->dtype, DType::float32);
  EXPECT_NE(parsed.find("tied"), nullptr);
}

class SaveFailure : public ::testing::Test {
 protected:
  template <typename Path>
  void expect_write_error(const Path& path) {
    EXPECT_THROW(save_torchscript(training_.model, path), WriteError);
    EXPECT_THROW(save_safetensors(training_.model, path), WriteError);
    EXPECT_TRUE(training_.still_in_bucket());
    EXPECT_TRUE(training_.model.module().is_training());
  }
  InTraining training_{varied_module()};
  TemporaryFolder folder_;
};

TEST_F(SaveFailure, NoSuchFolder) {
  expect_write_error(folder_ / "missing/out");
  EXPECT_EQ(files_in(folder_), 0U);
}

TEST_F(SaveFailure, NameIsAFolder) {
  std::filesystem::create_directory(folder_ / "out");
  expect_write_error(folder_ / "out");
  EXPECT_EQ(files_in(folder_), 1U);
}

// A limit of this process on the size of files stands for a full disk.
TEST_F(SaveFailure, DiskFull) {
  write_file(folder_ / "out", "old");
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 300, .rlim_max = limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  expect_write_error(folder_ / "out");
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(files_in(folder_), 1U);
  EXPECT_EQ(read_text(folder_ / "out"), "old");
}

}  // namespace
}  // namespace decent
