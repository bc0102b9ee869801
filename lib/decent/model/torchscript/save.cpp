#include "decent/model/torchscript/save.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>

#include "decent/core/file.h"

namespace decent {
namespace {

// While it lives, every parameter has a storage of exactly its own size, because TorchScript writes
// whole storages, and a parameter in training is a view of a bucket. Every tensor is on the CPU, so
// that a machine without a GPU can load the file.
class CompactStorage {
 public:
  explicit CompactStorage(const Model& model) {
    const at::NoGradGuard no_grad;
    for (const auto& [name, parameter] : model.all_parameters())
      replace(parameter, parameter.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    for (const auto& [name, buffer] : model.buffers()) bring_to_cpu(buffer);
    for (const at::Tensor& constant : model.constants()) bring_to_cpu(constant);
  }
  CompactStorage(const CompactStorage&) = delete;
  CompactStorage& operator=(const CompactStorage&) = delete;
  ~CompactStorage() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].set_data(views_[i]);
  }

 private:
  void replace(const at::Tensor& tensor, const at::Tensor& data) {
    tensors_.push_back(tensor);
    views_.push_back(tensor.variable_data());
    tensors_.back().set_data(data);
  }
  void bring_to_cpu(const at::Tensor& tensor) {
    if (!tensor.is_cpu()) replace(tensor, tensor.detach().to(at::kCPU));
  }

  std::vector<at::Tensor> tensors_;
  std::vector<at::Tensor> views_;
};

// While it lives, the base of adapters trains as in the model's file, for whoever trains the
// written one.
class TrainableBase {
 public:
  explicit TrainableBase(const Model& model) : parameters_(model.trainable_base()) {
    for (const at::Tensor& each : parameters_) each.requires_grad_();
  }
  TrainableBase(const TrainableBase&) = delete;
  TrainableBase& operator=(const TrainableBase&) = delete;
  ~TrainableBase() {
    for (const at::Tensor& each : parameters_) each.requires_grad_(false);
  }

 private:
  const std::vector<at::Tensor>& parameters_;
};

// While it lives, every part of the module is in eval mode.
class EvalMode {
 public:
  explicit EvalMode(torch::jit::Module& module) {
    for (const torch::jit::Module& part : module.modules()) {
      if (part.hasattr("training")) modes_.emplace_back(part, part.is_training());
    }
    module.eval();
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;
  ~EvalMode() {
    for (auto& [part, training] : modes_) part.setattr("training", training);
  }

 private:
  std::vector<std::pair<torch::jit::Module, bool>> modes_;
};

// A copy with code of its own, because a plain copy shares its code with the module.
torch::jit::Module with_scaling(const torch::jit::Module& module, const FileScaling& scaling) {
  std::stringstream file;
  torch::jit::ExportModule(module, file);
  torch::jit::Module other = torch::jit::load(file, at::kCPU);
  add_scaling(other, scaling);
  return other;
}

}  // namespace

void save_torchscript(Model& model, const std::filesystem::path& path, const FileExtras& extras) {
  const CompactStorage compact(model);
  const TrainableBase trainable(model);
  const EvalMode eval(model.module());
  const torch::jit::Module written =
      extras.scaling.empty() ? model.module() : with_scaling(model.module(), extras.scaling);
  torch::jit::ExtraFilesMap files;
  if (!extras.data.empty()) files[kDataInFile] = extras.data;
  AtomicFile file(path);
  // A writer of our own, because LibTorch's throws from a destructor if the disk is full.
  const auto write = [&file](const void* data, std::size_t size) {
    file.write({static_cast<const char*>(data), size});
    return size;
  };
  torch::jit::ExportModule(written, write, files);
  file.commit();
}

}  // namespace decent
