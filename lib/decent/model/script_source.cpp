#include "decent/model/script_source.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <array>
#include <map>
#include <memory>

#include "decent/core/error.h"

namespace decent {
namespace {

// "CONSTANTS.mask" in the source.
class ConstantTable : public torch::jit::SugaredValue {
 public:
  explicit ConstantTable(const ScriptSource& source) : source_(source) {}
  std::string kind() const override { return "constants"; }
  std::shared_ptr<SugaredValue> attr(const torch::jit::SourceRange& place,
                                     torch::jit::GraphFunction& function,
                                     const std::string& name) override {
    const std::optional<at::Tensor> found = source_.constant(name);
    if (!found) throw torch::jit::ErrorReport(place) << "no " << name;
    torch::jit::Value* constant = function.graph()->insertConstant(*found);
    constant->setType(
        c10::TensorType::get());  // without the shape, so that lists and branches have one type
    return std::make_shared<torch::jit::SimpleValue>(constant);
  }

 private:
  const ScriptSource& source_;
};

struct NamedNumber {
  std::string_view name;
  std::int64_t number;
};

constexpr NamedNumber named(std::string_view name, at::ScalarType type) {
  return {name, static_cast<std::int64_t>(type)};
}
constexpr NamedNumber named(std::string_view name, at::MemoryFormat format) {
  return {name, static_cast<std::int64_t>(format)};
}

// Names of objects in Python that are numbers in TorchScript.
constexpr std::array kNumbers = std::to_array<NamedNumber>({
    named("float16", at::kHalf),
    named("bfloat16", at::kBFloat16),
    named("float32", at::kFloat),
    named("float64", at::kDouble),
    named("complex32", at::kComplexHalf),
    named("complex64", at::kComplexFloat),
    named("complex128", at::kComplexDouble),
    named("bool", at::kBool),
    named("uint8", at::kByte),
    named("uint16", at::kUInt16),
    named("uint32", at::kUInt32),
    named("uint64", at::kUInt64),
    named("int8", at::kChar),
    named("int16", at::kShort),
    named("int32", at::kInt),
    named("int64", at::kLong),
    named("contiguous_format", at::MemoryFormat::Contiguous),
    named("preserve_format", at::MemoryFormat::Preserve),
    named("channels_last", at::MemoryFormat::ChannelsLast),
    named("channels_last_3d", at::MemoryFormat::ChannelsLast3d),
    {"strided", static_cast<std::int64_t>(at::kStrided)},
});

// "torch" in the source: its functions, and kNumbers ("torch.float32").
class TorchNames : public torch::jit::BuiltinModule {
 public:
  TorchNames() : BuiltinModule("aten") {}
  std::shared_ptr<SugaredValue> attr(const torch::jit::SourceRange& place,
                                     torch::jit::GraphFunction& function,
                                     const std::string& field) override {
    for (const NamedNumber& each : kNumbers) {
      if (field == each.name) {
        return std::make_shared<torch::jit::SimpleValue>(
            function.graph()->insertConstant(each.number));
      }
    }
    return BuiltinModule::attr(place, function, field);
  }
};

struct SourceResolver : torch::jit::Resolver {
  explicit SourceResolver(const ScriptSource& script) : source(script) {}
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(
      const std::string& name, torch::jit::GraphFunction& function,
      const torch::jit::SourceRange& place) override {
    if (name == "CONSTANTS") return std::make_shared<ConstantTable>(source);
    if (name == "torch") return std::make_shared<TorchNames>();
    if (name == "math") return std::make_shared<torch::jit::BuiltinModule>("aten");
    if (name == "annotate") {
      return torch::jit::SpecialFormValue::create(c10::Symbol::prim("annotate"));
    }
    return torch::jit::nativeResolver()->resolveValue(name, function, place);
  }
  c10::TypePtr resolveType(const std::string& name, const torch::jit::SourceRange& place) override {
    return torch::jit::nativeResolver()->resolveType(name, place);
  }
  const ScriptSource& source;
};

// Finds a module such as "layer1.0" in the hierarchy, or creates it.
class Hierarchy {
 public:
  Hierarchy(const torch::jit::Module& root, const std::string& kind)
      : part_name_("__torch__." + kind + "Part") {
    modules_.emplace("", root);
  }

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
    torch::jit::Module made(c10::QualifiedName(part_name_),
                            modules_.at("")._ivalue()->compilation_unit(), /*shouldMangle=*/true);
    made.register_attribute("training", c10::BoolType::get(), true);
    parent.register_module(name, made);
    modules_.emplace(path, made);
    return made;
  }

  const std::string part_name_;
  std::map<std::string, torch::jit::Module> modules_;
};

bool opens_files(torch::jit::Block* block) {
  static const auto kSave = c10::Symbol::aten("save");
  static const auto kFromFile = c10::Symbol::aten("from_file");
  for (torch::jit::Node* node : block->nodes()) {
    if (node->kind() == kSave || node->kind() == kFromFile) return true;
    for (torch::jit::Block* inner : node->blocks())
      if (opens_files(inner)) return true;
  }
  return false;
}

// Translations never write such a call. This checks it once more, because the source is made from
// files of unknown origin.
void refuse_files(const torch::jit::Module& module) {
  for (const torch::jit::Method& method : module.get_methods()) {
    if (opens_files(torch::jit::toGraphFunction(method.function()).graph()->block()))
      throw UserError("the model opens files of the machine, which a model must not");
  }
}

}  // namespace

torch::jit::Module compile(const ScriptSource& source) {
  torch::jit::Module root("__torch__." + source.kind + "Model");
  root.register_attribute("training", c10::BoolType::get(), true);
  for (const std::string& each : source.switches)
    root.register_attribute(each, c10::BoolType::get(), false);
  Hierarchy hierarchy(root, source.kind);
  for (const auto& [path, tensor] : source.parameters) hierarchy.add(path, tensor, false);
  for (const auto& [path, tensor] : source.buffers) hierarchy.add(path, tensor, true);
  root.define(source.methods, std::make_shared<SourceResolver>(source));
  refuse_files(root);
  return root;
}

}  // namespace decent
