#include "decent/model/pt2/module.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <map>
#include <span>
#include <tuple>

#include "decent/core/error.h"
#include "decent/model/script_source.h"

namespace decent {
namespace {

// Creates the tensors. Those that are the same view of the same record, such as tied weights,
// become one.
class TensorsOfArchive {
 public:
  at::Tensor get(const pt2::Payload& payload) {
    at::Tensor& tensor = made_[{payload.record, payload.dtype, payload.sizes, payload.strides,
                                payload.storage_offset}];
    if (!tensor.defined()) tensor = to_torch(payload);
    return tensor;
  }

 private:
  using View = std::tuple<std::string, pt2::ScalarType, std::vector<std::int64_t>,
                          std::vector<std::int64_t>, std::int64_t>;
  std::map<View, at::Tensor> made_;
};

// The bytes from the tensor's first element to its last. The rest of the record may be large and
// belong to thousands of other tensors if parameters are views of one flat storage.
std::span<const std::byte> used_part(const pt2::Payload& payload) {
  const pt2::StorageRange range = payload.range();
  const std::uint64_t element = pt2::size_of(payload.dtype);
  return payload.storage.subspan(range.begin * element, (range.end - range.begin) * element);
}

}  // namespace

std::optional<at::ScalarType> to_torch(pt2::ScalarType type) {
  using Type = pt2::ScalarType;
  switch (type) {
    case Type::uint8:
      return at::kByte;
    case Type::int8:
      return at::kChar;
    case Type::int16:
      return at::kShort;
    case Type::int32:
      return at::kInt;
    case Type::int64:
      return at::kLong;
    case Type::float16:
      return at::kHalf;
    case Type::float32:
      return at::kFloat;
    case Type::float64:
      return at::kDouble;
    case Type::complex32:
      return at::kComplexHalf;
    case Type::complex64:
      return at::kComplexFloat;
    case Type::complex128:
      return at::kComplexDouble;
    case Type::boolean:
      return at::kBool;
    case Type::bfloat16:
      return at::kBFloat16;
    case Type::uint16:
      return at::kUInt16;
    case Type::float8_e4m3fn:
      return at::kFloat8_e4m3fn;
    case Type::float8_e5m2:
      return at::kFloat8_e5m2;
    case Type::float8_e4m3fnuz:
      return at::kFloat8_e4m3fnuz;
    case Type::float8_e5m2fnuz:
      return at::kFloat8_e5m2fnuz;
    case Type::float8_e8m0fnu:
      return at::kFloat8_e8m0fnu;
    case Type::uint32:
      return at::kUInt32;
    case Type::uint64:
      return at::kUInt64;
    case Type::unknown:
      return std::nullopt;
  }
  return std::nullopt;
}

at::Tensor to_torch(const pt2::Payload& payload) {
  const auto type = to_torch(payload.dtype);
  if (!type)
    throw UserError("'" + payload.record + "' holds elements of a type that PyTorch lacks");
  const std::span<const std::byte> used = used_part(payload);
  at::Tensor bytes =
      at::empty({static_cast<std::int64_t>(used.size())}, at::TensorOptions(at::kByte));
  // Copies, because another program's archive may have the elements at unaligned addresses.
  if (!used.empty()) std::memcpy(bytes.mutable_data_ptr(), used.data(), used.size());
  const at::Tensor tensor = bytes.view(*type).as_strided(payload.sizes, payload.strides, 0);
  return tensor.is_non_overlapping_and_dense() && tensor.nbytes() == bytes.nbytes()
             ? tensor
             : tensor.clone();
}

torch::jit::Module make_module(const pt2::ModuleSource& source) {
  TensorsOfArchive tensors;
  ScriptSource script{.kind = "Exported", .methods = source.methods};
  for (const pt2::NamedPayload& each : source.parameters) {
    at::Tensor tensor = tensors.get(*each.payload);
    script.parameters.emplace_back(each.name,
                                   tensor.set_requires_grad(each.payload->requires_grad));
  }
  for (const pt2::NamedPayload& each : source.buffers)
    script.buffers.emplace_back(each.name, tensors.get(*each.payload));
  script.constant = [&](const std::string& name) -> std::optional<at::Tensor> {
    const auto found = source.constants.find(name);
    return found == source.constants.end() ? std::nullopt
                                           : std::optional(tensors.get(*found->second));
  };
  return compile(script);
}

}  // namespace decent
