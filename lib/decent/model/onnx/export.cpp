#include "decent/model/onnx/export.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <map>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/onnx/module.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/walk.h"
#include "decent/onnx/write/write.h"
#include "decent/onnx/write/write_external.h"

namespace decent {
namespace {

using TensorsByName = std::map<std::string, at::Tensor>;
using TensorsByPlace = std::map<std::uint64_t, const onnx::Tensor*>;

at::ScalarType type_in_file(onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::float16:
      return at::kHalf;
    case onnx::ElementType::bfloat16:
      return at::kBFloat16;
    case onnx::ElementType::float64:
      return at::kDouble;
    default:
      return at::kFloat;
  }
}

// Otherwise a weight that is finite in training but not in the file's type would be lost silently.
at::Tensor rounded(const std::string& name, const at::Tensor& weight, onnx::ElementType type) {
  const at::Tensor result = weight.detach().to(at::kCPU).to(type_in_file(type));
  const bool lost = at::isfinite(weight.detach().to(at::kCPU)).sum().item<std::int64_t>() !=
                    at::isfinite(result).sum().item<std::int64_t>();
  if (!lost) return result;
  throw UserError("'" + name + "' has values beyond what " + std::string(onnx::name_of(type)) +
                  ", its type in the .onnx file, can hold. --export to .pt or .safetensors keeps "
                  "them");
}

TensorsByName tensors_of(const Model& model) {
  TensorsByName tensors;
  for (const auto& [name, tensor] : model.state()) tensors.emplace(name, tensor);
  return tensors;
}

// The imported graph is a copy of the file's graph with inlined functions, but the original file is
// written. The place of a tensor's elements in the file identifies it in both.
TensorsByPlace tensors_by_place(const onnx::Model& file) {
  TensorsByPlace tensors;
  onnx::for_each_tensor(file, [&](const onnx::Tensor& tensor) {
    if (!tensor.fields.empty()) tensors.emplace(tensor.fields.front().begin, &tensor);
  });
  return tensors;
}

onnx::NewElements new_elements(const onnx::Tensor& tensor, const std::string& name,
                               const at::Tensor& weight) {
  const onnx::Tensor now = from_torch(rounded(name, weight, tensor.type));
  const auto bytes = now.elements();
  return {&tensor, {bytes.begin(), bytes.end()}};
}

/// A tensor of the file and its counterpart in the module.
struct KeptTensor {
  const onnx::Tensor& tensor;
  const onnx::Node* identity;  // that renames it; null: the initializer itself
  const std::string& name;
  at::Tensor weight;
};

std::vector<KeptTensor> kept_tensors(const onnx::Classification& classification,
                                     const Model& model) {
  const TensorsByName tensors = tensors_of(model);
  std::vector<KeptTensor> kept;
  const auto add = [&](const onnx::Classified& classified, const onnx::Node* identity) {
    const auto found = tensors.find(classified.name);
    if (!onnx::is_kept(classified.role) || found == tensors.end()) return;  // or no node reads it
    kept.push_back({*classified.tensor, identity, classified.name, found->second});
  };
  for (const auto& [tensor, classified] : classification.initializers) add(classified, nullptr);
  for (const auto& [node, classified] : classification.own) add(classified, node);
  return kept;
}

void add_own_initializer(const KeptTensor& kept, onnx::Changes& changes) {
  onnx::Tensor now = from_torch(rounded(kept.name, kept.weight, kept.tensor.type));
  if (std::ranges::equal(now.elements(), kept.tensor.elements())) return;
  now.name = kept.identity->outputs.front();
  changes.own.push_back({kept.identity, std::move(now)});
}

}  // namespace

void export_onnx(const OnnxImport& import, const Model& model, const std::filesystem::path& path,
                 const FileExtras& extras) {
  const onnx::Model& file = *import.file;
  const TensorsByPlace in_file = tensors_by_place(file);
  onnx::Changes changes;
  if (!extras.data.empty()) changes.metadata[kDataInFile] = extras.data;
  changes.for_training = extras.for_training;
  changes.masks = import.masks;
  if (!extras.for_training && !import.masks.empty())
    changes.metadata[kLostInFile] = "off: " + counted(std::ssize(import.masks), "dropout") +
                                    " or stochastic depth, which random numbers made";
  for (const KeptTensor& kept : kept_tensors(import.classification, model)) {
    if (kept.identity != nullptr) {
      add_own_initializer(kept, changes);
    } else if (!kept.tensor.fields.empty()) {  // it has elements
      const auto own = in_file.find(kept.tensor.fields.front().begin);
      const bool is_list = own == in_file.end();  // floats, which are no tensor in the file
      changes.elements.push_back(
          new_elements(is_list ? kept.tensor : *own->second, kept.name, kept.weight));
    }
  }
  onnx::write_model(file, changes, path);
}

void round_to_file_types(const OnnxImport& import, Model& model) {
  const at::NoGradGuard no_grad;
  for (const KeptTensor& kept : kept_tensors(import.classification, model)) {
    if (onnx::is_half(kept.tensor.type))
      kept.weight.copy_(rounded(kept.name, kept.weight, kept.tensor.type));
  }
}

}  // namespace decent
