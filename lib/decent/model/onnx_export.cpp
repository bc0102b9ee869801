#include "decent/model/onnx_export.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <map>

#include "decent/core/error.h"
#include "decent/model/onnx/elements.h"
#include "decent/model/onnx/walk.h"
#include "decent/model/onnx/write.h"
#include "decent/model/onnx_import.h"
#include "decent/model/onnx_module.h"

namespace decent {
namespace {

using TensorsByName = std::map<std::string, at::Tensor>;
using TensorsByPlace = std::map<std::uint64_t, const onnx::Tensor*>;

bool is_kept(onnx::Role role) {
  return role == onnx::Role::trainable || role == onnx::Role::buffer;
}

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

// A weight that is finite in training and not in the file would be lost without a word.
at::Tensor rounded(const std::string& name, const at::Tensor& weight, onnx::ElementType type) {
  const at::Tensor result = weight.detach().to(at::kCPU).to(type_in_file(type));
  const bool lost = at::isfinite(weight.detach().to(at::kCPU)).sum().item<std::int64_t>() !=
                    at::isfinite(result).sum().item<std::int64_t>();
  if (!lost) return result;
  throw UserError("'" + name + "' has values beyond what " + std::string(onnx::name_of(type)) +
                  ", its type in the .onnx file, can hold. --export to .pt or .safetensors keeps "
                  "them");
}

TensorsByName tensors_of(const TorchScriptModel& model) {
  TensorsByName tensors;
  for (const auto& [name, tensor] : model.state()) tensors.emplace(name, tensor);
  return tensors;
}

const OnnxImport& import_of(const TorchScriptModel& model) {
  if (model.onnx() != nullptr) return *model.onnx();
  throw UserError("model '" + model.path().string() +
                  "' did not come from an .onnx file, so that it cannot be written as one. "
                  "--export writes it to .pt or .safetensors");
}

// What is imported is a copy of the file's graph, in which functions are inlined; what is written
// is the file. Where the file has its elements tells which tensor is which.
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

const onnx::Tensor* find_initializer(const onnx::Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.initializers.begin(), graph.initializers.end(),
                                  [&](const onnx::Tensor& tensor) { return tensor.name == name; });
  return found == graph.initializers.end() ? nullptr : &*found;
}

onnx::OwnInitializer own_initializer(const onnx::Node& node, const onnx::Tensor& source,
                                     const std::string& name, const at::Tensor& weight) {
  onnx::Tensor tensor = from_torch(rounded(name, weight, source.type));
  tensor.name = node.outputs.front();
  return {&node, std::move(tensor)};
}

}  // namespace

void export_onnx(const TorchScriptModel& model, const std::filesystem::path& path) {
  const OnnxImport& import = import_of(model);
  const TensorsByName tensors = tensors_of(model);
  const TensorsByPlace in_file = tensors_by_place(*import.file);
  onnx::Changes changes;
  for (const auto& [tensor, classified] : import.classification.initializers) {
    const auto found = tensors.find(classified.name);
    if (!is_kept(classified.role) || found == tensors.end() || tensor->fields.empty())
      continue;  // a constant, what no node reads, what has no elements
    const onnx::Tensor& own = *in_file.at(tensor->fields.front().begin);
    changes.elements.push_back(new_elements(own, classified.name, found->second));
  }
  for (const auto& [node, classified] : import.classification.own) {
    if (!is_kept(classified.role)) continue;
    const onnx::Tensor* source = find_initializer(import.model->graph, node->inputs.front());
    const at::Tensor& weight = tensors.at(classified.name);
    const auto same = new_elements(*source, classified.name, weight);
    if (std::ranges::equal(same.elements, source->elements())) continue;
    changes.own.push_back(own_initializer(*node, *source, classified.name, weight));
  }
  onnx::write_model(*import.file, changes, path);
}

void round_to_file_types(TorchScriptModel& model) {
  const at::NoGradGuard no_grad;
  const OnnxImport& import = import_of(model);
  const TensorsByName tensors = tensors_of(model);
  for (const auto& [tensor, classified] : import.classification.initializers) {
    const auto found = tensors.find(classified.name);
    if (!is_kept(classified.role) || found == tensors.end() || !onnx::is_half(tensor->type))
      continue;
    at::Tensor weight = found->second;
    weight.copy_(rounded(classified.name, weight, tensor->type));
  }
}

}  // namespace decent
