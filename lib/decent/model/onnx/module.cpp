#include "decent/model/onnx/module.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <optional>

#include "decent/core/error.h"
#include "decent/model/reason.h"
#include "decent/model/script_source.h"
#include "decent/onnx/translate/node_context.h"

namespace decent {
namespace {

using onnx::ElementType;

std::optional<at::ScalarType> scalar_type_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return at::kFloat;
    case ElementType::uint8:
      return at::kByte;
    case ElementType::int8:
      return at::kChar;
    case ElementType::uint16:
      return at::kUInt16;
    case ElementType::int16:
      return at::kShort;
    case ElementType::int32:
      return at::kInt;
    case ElementType::int64:
      return at::kLong;
    case ElementType::boolean:
      return at::kBool;
    case ElementType::float16:
      return at::kHalf;
    case ElementType::float64:
      return at::kDouble;
    case ElementType::uint32:
      return at::kUInt32;
    case ElementType::uint64:
      return at::kUInt64;
    case ElementType::bfloat16:
      return at::kBFloat16;
    case ElementType::string:
    case ElementType::undefined:
      return std::nullopt;
  }
  return std::nullopt;
}

ElementType element_type_of(at::ScalarType type) {
  for (int each = 1; each <= 16; ++each) {
    const auto candidate = static_cast<ElementType>(each);
    if (scalar_type_of(candidate) == type) return candidate;
  }
  return ElementType::undefined;
}

}  // namespace

at::Tensor to_torch(const onnx::Tensor& tensor) {
  const auto type = scalar_type_of(tensor.type);
  if (!type) {
    throw UserError("tensor '" + tensor.name + "' holds " +
                    std::string(onnx::name_of(tensor.type)) +
                    " elements, which PyTorch does not have");
  }
  const at::Tensor result = at::empty(tensor.dims, at::TensorOptions().dtype(*type));
  const std::span<const std::byte> bytes = tensor.elements();
  if (!bytes.empty()) std::memcpy(result.mutable_data_ptr(), bytes.data(), bytes.size());
  return result;
}

onnx::Tensor from_torch(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  auto bytes = std::make_shared<std::vector<std::byte>>(dense.nbytes());
  if (!bytes->empty()) std::memcpy(bytes->data(), dense.const_data_ptr(), bytes->size());
  onnx::Tensor result;
  result.type = element_type_of(dense.scalar_type());
  result.dims = dense.sizes().vec();
  result.encoding = onnx::Encoding::typed;
  result.decoded = std::move(bytes);
  return result;
}

torch::jit::Module make_module(const onnx::ModuleSource& source) {
  ScriptSource script{.kind = "Onnx", .methods = source.methods};
  if (source.may_give_logits) script.switches.emplace_back(onnx::kGivesLogits);
  for (const onnx::NamedTensor& each : source.parameters)
    script.parameters.emplace_back(each.name, to_torch(*each.tensor).set_requires_grad(true));
  for (const onnx::NamedTensor& each : source.buffers)
    script.buffers.emplace_back(each.name, to_torch(*each.tensor));
  script.constant = [&source](const std::string& name) -> std::optional<at::Tensor> {
    const auto found = source.constants.find(name);
    return found == source.constants.end() ? std::nullopt : std::optional(to_torch(*found->second));
  };
  return compile(script);
}

std::vector<onnx::Tensor> evaluate_module(const onnx::ModuleSource& source) {
  const at::NoGradGuard no_grad;
  std::vector<onnx::Tensor> outcomes;
  try {
    for (const at::Tensor& each : make_module(source).forward({}).toTensorVector())
      outcomes.push_back(from_torch(each));
  } catch (const std::exception& error) {
    throw Unsupported("cannot be computed: " + reason_of(error));
  }
  return outcomes;
}

}  // namespace decent
