#include "decent/model/onnx/module.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <cstring>

#include "decent/core/error.h"
#include "decent/model/reason.h"
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

// "CONSTANTS.mask" in the source.
class ConstantTable : public torch::jit::SugaredValue {
 public:
  explicit ConstantTable(const onnx::ModuleSource& source) : source_(source) {}
  std::string kind() const override { return "constants"; }
  std::shared_ptr<SugaredValue> attr(const torch::jit::SourceRange& place,
                                     torch::jit::GraphFunction& function,
                                     const std::string& name) override {
    const auto found = source_.constants.find(name);
    if (found == source_.constants.end()) throw torch::jit::ErrorReport(place) << "no " << name;
    torch::jit::Value* constant = function.graph()->insertConstant(to_torch(*found->second));
    constant->setType(
        c10::TensorType::get());  // not one that lists and branches tell apart by shape
    return std::make_shared<torch::jit::SimpleValue>(constant);
  }

 private:
  const onnx::ModuleSource& source_;
};

// "torch" in the source: its functions, and the names of element types ("torch.float32"), which
// TorchScript knows as numbers.
class TorchNames : public torch::jit::BuiltinModule {
 public:
  TorchNames() : BuiltinModule("aten") {}
  std::shared_ptr<SugaredValue> attr(const torch::jit::SourceRange& place,
                                     torch::jit::GraphFunction& function,
                                     const std::string& field) override {
    for (int each = 1; each <= 16; ++each) {
      const auto type = scalar_type_of(static_cast<ElementType>(each));
      if (!type || field != onnx::name_of(static_cast<ElementType>(each))) continue;
      return std::make_shared<torch::jit::SimpleValue>(
          function.graph()->insertConstant(static_cast<std::int64_t>(*type)));
    }
    return BuiltinModule::attr(place, function, field);
  }
};

struct SourceResolver : torch::jit::Resolver {
  explicit SourceResolver(const onnx::ModuleSource& module_source) : source(module_source) {}
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(
      const std::string& name, torch::jit::GraphFunction& function,
      const torch::jit::SourceRange& place) override {
    if (name == "CONSTANTS") return std::make_shared<ConstantTable>(source);
    if (name == "torch") return std::make_shared<TorchNames>();
    if (name == "annotate") {
      return torch::jit::SpecialFormValue::create(c10::Symbol::prim("annotate"));
    }
    return torch::jit::nativeResolver()->resolveValue(name, function, place);
  }
  c10::TypePtr resolveType(const std::string& name, const torch::jit::SourceRange& place) override {
    return torch::jit::nativeResolver()->resolveType(name, place);
  }
  const onnx::ModuleSource& source;
};

// The module "layer1.0" of the hierarchy, made where it is not there yet.
class Hierarchy {
 public:
  explicit Hierarchy(const torch::jit::Module& root) { modules_.emplace("", root); }

  void add(const std::string& path, const at::Tensor& tensor, bool is_buffer) {
    const std::size_t dot = path.rfind('.');
    const std::string owner = dot == std::string::npos ? "" : path.substr(0, dot);
    const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
    module_at(owner).register_parameter(name, tensor, is_buffer);
  }

 private:
  torch::jit::Module module_at(const std::string& path) {
    const auto found = modules_.find(path);
    if (found != modules_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    const std::string owner = dot == std::string::npos ? "" : path.substr(0, dot);
    const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
    torch::jit::Module parent = module_at(owner);
    torch::jit::Module made(c10::QualifiedName("__torch__.OnnxPart"),
                            modules_.at("")._ivalue()->compilation_unit(), /*shouldMangle=*/true);
    made.register_attribute("training", c10::BoolType::get(), true);
    parent.register_module(name, made);
    modules_.emplace(path, made);
    return made;
  }

  std::map<std::string, torch::jit::Module> modules_;
};

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
  torch::jit::Module root("__torch__.OnnxModel");
  root.register_attribute("training", c10::BoolType::get(), true);
  if (source.may_give_logits)
    root.register_attribute(onnx::kGivesLogits, c10::BoolType::get(), false);
  Hierarchy hierarchy(root);
  for (const onnx::NamedTensor& each : source.parameters)
    hierarchy.add(each.name, to_torch(*each.tensor).set_requires_grad(true), false);
  for (const onnx::NamedTensor& each : source.buffers)
    hierarchy.add(each.name, to_torch(*each.tensor), true);
  root.define(source.methods, std::make_shared<SourceResolver>(source));
  return root;
}

std::vector<onnx::Tensor> evaluate_module(const onnx::ModuleSource& source) {
  const at::NoGradGuard no_grad;
  std::vector<onnx::Tensor> outcomes;
  try {
    for (const at::Tensor& each : make_module(source).forward({}).toTensorVector())
      outcomes.push_back(from_torch(each));
  } catch (const std::exception& error) {
    throw onnx::Unsupported("cannot be computed: " + reason_of(error));
  }
  return outcomes;
}

}  // namespace decent
