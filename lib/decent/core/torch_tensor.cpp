#include "decent/core/torch_tensor.h"

#include <optional>
#include <variant>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using pickle::Pickle;
using pickle::Ref;

constexpr std::size_t kLongestName = 1000;
constexpr int kMaxWrappers = 8;  // a parameter with attributes of its own has two

bool is_named(const pickle::Global& global, std::string_view module, std::string_view name) {
  return global.module == module && global.name == name;
}

bool is_tensor_function(const pickle::Global& global) {
  return (global.module == "torch._utils" && global.name.starts_with("_rebuild_")) ||
         is_named(global, "torch._tensor", "_rebuild_from_type_v2");
}

// A call of a function by its name.
struct Call {
  const pickle::Global* function = nullptr;
  const pickle::Items* arguments = nullptr;
};

std::optional<Call> call_of(const Pickle& pickle, Ref callee, Ref arguments) {
  const auto* function = pickle.get<pickle::Global>(callee);
  const auto* tuple = pickle.get<pickle::Tuple>(arguments);
  if (function == nullptr || tuple == nullptr) return std::nullopt;
  return Call{function, &tuple->items};
}

std::optional<Call> call_of(const Pickle& pickle, Ref ref) {
  const auto* object = pickle.get<pickle::Object>(ref);
  if (object == nullptr) return std::nullopt;
  return call_of(pickle, object->callee, object->arguments);
}

class TensorReader {
 public:
  TensorReader(const TorchFile& file, const std::string& name) : file_(file), name_(name) {}

  StoredTensor read(Ref ref) const {
    if (!is_tensor(file_.pickle, ref)) fail("is " + kind_of(file_.pickle, ref) + ", not a tensor");
    std::optional<Call> call = call_of(file_.pickle, ref);
    for (int depth = 0; call && is_wrapper(*call) && depth < kMaxWrappers; ++depth) {
      call = wrapped(*call);
    }
    if (!call) fail_damaged("it is made of no tensor");
    const bool is_known = is_tensor_function(*call->function);
    const std::string_view function = is_known ? call->function->name : "";
    const std::size_t count = call->arguments->size();
    const bool first = function == "_rebuild_tensor" && count == 4;
    const bool second = function == "_rebuild_tensor_v2" && (count == 6 || count == 7);
    const bool third = function == "_rebuild_tensor_v3" && (count == 7 || count == 8);
    if (!first && !second && !third) {
      fail("is made by " + in_quotes(name_of(*call->function)) +
           ", which is not run; dense tensors of numbers can be read");
    }
    if (count == (third ? 8 : 7)) check_metadata(call->arguments->back());
    return dense(*call->arguments, third ? std::optional(call->arguments->at(6)) : std::nullopt);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(file_.what + ": " + in_quotes(name_) + " " + reason);
  }
  [[noreturn]] void fail_damaged(const std::string& reason) const { fail("is damaged: " + reason); }

  static bool is_wrapper(const Call& call) {
    return is_named(*call.function, "torch._utils", "_rebuild_parameter") ||
           is_named(*call.function, "torch._utils", "_rebuild_parameter_with_state") ||
           is_named(*call.function, "torch._tensor", "_rebuild_from_type_v2");
  }

  // The call inside the wrapper of a parameter, or of a tensor with attributes of its own.
  std::optional<Call> wrapped(const Call& call) const {
    const pickle::Items& arguments = *call.arguments;
    if (call.function->module == "torch._utils") {
      if (arguments.empty()) fail_damaged("a parameter of nothing");
      return call_of(file_.pickle, arguments[0]);
    }
    if (arguments.size() < 3) fail_damaged("a tensor of nothing");
    const auto* type = file_.pickle.get<pickle::Global>(arguments[1]);
    if (type == nullptr || !is_plain_class(*type)) {
      fail("is a tensor of a class of its own (" + kind_of(file_.pickle, arguments[1]) +
           "), which cannot be read without its code");
    }
    return call_of(file_.pickle, arguments[0], arguments[2]);
  }

  static bool is_plain_class(const pickle::Global& type) {
    return is_named(type, "torch", "Tensor") || is_named(type, "torch._tensor", "Tensor") ||
           is_named(type, "torch.nn.parameter", "Parameter") ||
           is_named(type, "torch.nn.parameter", "Buffer");
  }

  void check_metadata(Ref ref) const {
    const auto* entries = file_.pickle.get<pickle::Dict>(ref);
    if (file_.pickle.get<pickle::None>(ref) != nullptr) return;
    if (entries != nullptr && entries->entries.empty()) return;
    fail("is a view that negates or conjugates, which cannot be read; save tensor.resolve_neg()");
  }

  std::int64_t integer(Ref ref, const char* what) const {
    const auto* number = file_.pickle.get<std::int64_t>(ref);
    if (number == nullptr || *number < 0) fail_damaged(std::string(what) + " is no count");
    return *number;
  }

  std::vector<std::int64_t> integers(Ref ref, const char* what, const char* item_is) const {
    std::optional<Call> size = call_of(file_.pickle, ref);  // torch.Size((2, 3))
    const bool is_size = size && is_named(*size->function, "torch", "Size");
    if (is_size && size->arguments->size() == 1) ref = size->arguments->front();
    const auto* tuple = file_.pickle.get<pickle::Tuple>(ref);
    if (tuple == nullptr || tuple->items.size() > kMaxTensorDimensions) {
      fail_damaged(std::string(what) + " is no tuple of at most " +
                   std::to_string(kMaxTensorDimensions) + " counts");
    }
    std::vector<std::int64_t> numbers;
    for (const Ref item : tuple->items) numbers.push_back(integer(item, item_is));
    return numbers;
  }

  struct Storage {
    StorageType type;
    std::span<const std::byte> bytes;
  };

  // ("storage", class, key, device, number of elements), and in old files whether it is a view and
  // of what.
  Storage storage_of(Ref ref) const {
    const auto* reference = file_.pickle.get<pickle::Persistent>(ref);
    const auto* id = reference ? file_.pickle.get<pickle::Tuple>(reference->id) : nullptr;
    if (id == nullptr || id->items.size() < 5) fail_damaged("it has no storage");
    const auto* mark = file_.pickle.get<pickle::Text>(id->items[0]);
    const auto* global = file_.pickle.get<pickle::Global>(id->items[1]);
    const auto* key = file_.pickle.get<pickle::Text>(id->items[2]);
    if (mark == nullptr || mark->text != "storage" || global == nullptr || key == nullptr) {
      fail_damaged("it has no storage");
    }
    const StorageType* type = find_storage_type(*global);
    if (type == nullptr) fail("has elements of an unknown type, " + in_quotes(name_of(*global)));
    if (id->items.size() > 5 && file_.pickle.get<pickle::None>(id->items[5]) == nullptr) {
      fail("is a view of an old kind; write the file anew: torch.save(torch.load(..), ..)");
    }
    const auto found = file_.storages.find(key->text);
    if (found == file_.storages.end()) {
      fail_damaged("its storage " + in_quotes(key->text) + " is not in the file");
    }
    return {*type, found->second};
  }

  // The element type of a tensor in an untyped storage, by a name such as torch.float32.
  StorageType named_type(Ref ref) const {
    const auto* global = file_.pickle.get<pickle::Global>(ref);
    if (global == nullptr || global->module != "torch")
      fail_damaged("its element type has no name");
    StorageType type{.name = global->name, .element_bytes = 1, .dtype = {}};
    for (int i = 0; i <= static_cast<int>(DType::float64); ++i) {
      const auto dtype = static_cast<DType>(i);
      if (name_of(dtype) == global->name) type = {global->name, size_of(dtype), dtype};
    }
    return type;
  }

  // The number of elements from the first to the last; 0 if the tensor is empty.
  std::uint64_t extent(const StoredTensor& tensor) const {
    std::uint64_t last = 0;
    std::int64_t count = 1;
    bool overflows = false;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (tensor.shape[i] == 0) return 0;
      std::uint64_t step = 0;
      overflows |= __builtin_mul_overflow(static_cast<std::uint64_t>(tensor.shape[i] - 1),
                                          static_cast<std::uint64_t>(tensor.strides[i]), &step);
      overflows |= __builtin_add_overflow(last, step, &last);
      overflows |= __builtin_mul_overflow(count, tensor.shape[i], &count);
    }
    if (overflows || last + 1 == 0) fail_damaged("its shape is too large");
    return last + 1;
  }

  StoredTensor dense(const pickle::Items& arguments, std::optional<Ref> dtype) const {
    Storage storage = storage_of(arguments[0]);
    if (dtype) storage.type = named_type(*dtype);
    const auto offset = static_cast<std::uint64_t>(integer(arguments[1], "its offset"));
    StoredTensor tensor;
    tensor.shape = integers(arguments[2], "its shape", "a size");
    tensor.strides = integers(arguments[3], "its list of strides", "a stride");
    if (tensor.strides.size() != tensor.shape.size()) fail_damaged("its strides are too few");
    if (!storage.type.dtype) {
      fail("has elements of a type that cannot be read, " + in_quotes(storage.type.name));
    }
    tensor.dtype = *storage.type.dtype;
    const std::uint64_t elements = extent(tensor);
    const std::uint64_t there = storage.bytes.size() / storage.type.element_bytes;
    if (elements > 0 && (offset > there || elements > there - offset)) {
      fail_damaged("its shape " + shape_text(tensor.shape) + " asks for more than the " +
                   std::to_string(there) + " elements of its storage");
    }
    const std::size_t bytes = storage.type.element_bytes;
    if (elements > 0) tensor.data = storage.bytes.subspan(offset * bytes, elements * bytes);
    return tensor;
  }

  const TorchFile& file_;
  const std::string& name_;
};

struct KindText {
  const Pickle& pickle;

  // torch.nn.Module has this among its attributes.
  bool is_module(const pickle::Object& object) const {
    const auto* attributes = object.state ? pickle.get<pickle::Dict>(*object.state) : nullptr;
    if (attributes == nullptr) return false;
    for (const auto& [key, value] : attributes->entries) {
      const auto* name = pickle.get<pickle::Text>(key);
      if (name != nullptr && name->text == "_modules") return true;
    }
    return false;
  }

  std::string operator()(const pickle::None&) const { return "None"; }
  std::string operator()(bool) const { return "a truth value"; }
  std::string operator()(std::int64_t) const { return "a number"; }
  std::string operator()(const pickle::LargeInteger&) const { return "a number"; }
  std::string operator()(double) const { return "a number"; }
  std::string operator()(const pickle::Text&) const { return "a text"; }
  std::string operator()(const pickle::Bytes&) const { return "bytes"; }
  std::string operator()(const pickle::List&) const { return "a list"; }
  std::string operator()(const pickle::Tuple&) const { return "a tuple"; }
  std::string operator()(const pickle::Set&) const { return "a set"; }
  std::string operator()(const pickle::Dict&) const { return "a dictionary"; }
  std::string operator()(const pickle::Global& global) const { return in_quotes(name_of(global)); }
  std::string operator()(const pickle::Persistent&) const { return "a storage"; }
  std::string operator()(const pickle::Object& object) const {
    const auto* global = pickle.get<pickle::Global>(object.callee);
    if (global == nullptr) return "an object";
    if (is_tensor_function(*global)) return "a tensor";
    return (is_module(object) ? "a whole Python model of class " : "an object of class ") +
           in_quotes(name_of(*global)) + ", which only its code can make";
  }
};

}  // namespace

bool is_tensor(const Pickle& pickle, Ref ref) {
  const auto call = call_of(pickle, ref);
  return call && is_tensor_function(*call->function);
}

StoredTensor read_tensor(const TorchFile& file, Ref ref, const std::string& name) {
  return TensorReader(file, name).read(ref);
}

void check_name(const TorchFile& file, std::string_view name) {
  if (name.size() <= kLongestName) return;
  throw UserError(file.what + ": damaged: " + in_quotes(name) + " is too long a name");
}

std::string kind_of(const Pickle& pickle, Ref ref) {
  return std::visit(KindText{pickle}, pickle.values[ref]);
}

}  // namespace decent
