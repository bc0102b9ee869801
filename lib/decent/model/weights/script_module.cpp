#include "decent/model/weights/script_module.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_tensor.h"

namespace decent {
namespace {

using pickle::Ref;

constexpr int kMaxDepth = 200;                     // of modules inside one another
constexpr std::size_t kMaxAttributes = 1'000'000;  // each name of an attribute counts
constexpr std::size_t kMaxDeclared = 1'000'000;    // classes, parameters and buffers in the code
constexpr std::uint64_t kMaxCode = 64 << 20;       // bytes of code that are read

// What the code of a class declares.
struct ScriptClass {
  bool is_module = false;
  bool sets_its_state = false;
  std::set<std::string, std::less<>> state;  // parameters and buffers
};
using ScriptClasses = std::map<std::string, ScriptClass, std::less<>>;

bool cut_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Reads ["weight", "bias", ], at most `left` names.
void read_names(std::string_view list, std::set<std::string, std::less<>>& names,
                std::size_t& left) {
  for (std::size_t begin = list.find('"'); begin != std::string_view::npos;) {
    const std::size_t end = list.find('"', begin + 1);
    if (end == std::string_view::npos || left == 0) return;
    --left;
    names.emplace(list.substr(begin + 1, end - begin - 1));
    begin = list.find('"', end + 1);
  }
}

// Reads a line in the body of a class, without its two spaces of indentation.
void read_member(std::string_view line, ScriptClass& declared, std::size_t& left) {
  if (line.starts_with("def __setstate__(")) {
    declared.sets_its_state = true;
  } else if (line.starts_with("__parameters__ = ") || line.starts_with("__buffers__ = ")) {
    read_names(line, declared.state, left);
  }
}

// TorchScript's printer writes one declaration per line. Stops if none are left.
ScriptClasses read_classes(std::string_view code, std::size_t& left) {
  ScriptClasses classes;
  ScriptClass* current = nullptr;
  while (!code.empty() && left > 0) {
    std::string_view line = code.substr(0, code.find('\n'));
    code.remove_prefix(std::min(code.size(), line.size() + 1));
    if (cut_prefix(line, "class ")) {
      --left;
      current = &classes[std::string(line.substr(0, line.find_first_of("(:")))];
      current->is_module = line.ends_with("(Module):");
    } else if (current != nullptr && cut_prefix(line, "  ") && !line.starts_with(' ')) {
      read_member(line, *current, left);
    }
  }
  return classes;
}

// Whether the code of a class is in the file, unlike that of C++ classes, such as those of
// quantized modules' weights.
bool is_script_class(const pickle::Global& global) {
  if (global.module.starts_with("__torch__.torch.classes")) return false;
  return global.module == "__torch__" || global.module.starts_with("__torch__.");
}

const pickle::Global* class_of(const TorchFile& file, Ref ref) {
  const auto* object = file.pickle.get<pickle::Object>(ref);
  const auto* global = object ? file.pickle.get<pickle::Global>(object->callee) : nullptr;
  return global != nullptr && is_script_class(*global) ? global : nullptr;
}

class ModuleReader {
 public:
  explicit ModuleReader(const TorchFile& file) : file_(file) {}

  StoredTensors read() {
    read_module(file_.pickle.root, "", 0);
    return std::move(tensors_);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw UserError(file_.what + ": damaged: " + reason);
  }

  // "__torch__.net" and "Net": class Net of code/__torch__/net.py.
  const ScriptClass& find_class(const pickle::Global& global) {
    std::string path(global.module);
    for (char& c : path) {
      if (c == '.') c = '/';
    }
    path += ".py";
    const auto [classes, is_new] = classes_.try_emplace(path);
    if (is_new) classes->second = read_classes_of(path);
    const auto found = classes->second.find(global.name);
    if (found == classes->second.end()) fail("it has no class " + in_quotes(name_of(global)));
    return found->second;
  }

  ScriptClasses read_classes_of(const std::string& path) {
    const auto entry = file_.code.find(path);
    if (entry == file_.code.end()) fail("it has no code " + in_quotes(path));
    if (entry->second.size > code_left_) fail("its code is too long");
    code_left_ -= entry->second.size;
    const std::vector<std::byte> code =
        zip_content(entry->second, file_.what + ": " + in_quotes(path));
    ScriptClasses classes =
        read_classes({reinterpret_cast<const char*>(code.data()), code.size()}, declared_left_);
    if (declared_left_ == 0) fail("its code declares too much");
    return classes;
  }

  void read_module(Ref ref, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) fail("its modules lie in one another too deep");
    const pickle::Global& global = *class_of(file_, ref);
    const ScriptClass& declared = find_class(global);
    if (depth > 0 && !declared.is_module) return;
    const auto& state = file_.pickle.get<pickle::Object>(ref)->state;
    const auto* attributes = state ? file_.pickle.get<pickle::Dict>(*state) : nullptr;
    if (declared.sets_its_state || attributes == nullptr) refuse_code(global, prefix);
    for (const auto& [key, value] : attributes->entries) {
      if (++attributes_ > kMaxAttributes) fail("it has too many attributes");
      const auto* name = file_.pickle.get<pickle::Text>(key);
      if (name == nullptr) fail("an attribute has no name");
      check_name(file_, name->text);  // before it is copied
      read_attribute(declared, std::string(name->text), value, prefix, depth);
    }
  }

  [[noreturn]] void refuse_code(const pickle::Global& global, const std::string& prefix) const {
    throw UserError(
        file_.what + ": " +
        (prefix.empty() ? "the module"
                        : in_quotes(std::string_view(prefix).substr(0, prefix.size() - 1))) +
        " (" + in_quotes(name_of(global)) +
        ") makes its state by code of its own (__setstate__), which is not run.\nFrom Python, "
        "if you trust the file, save the weights alone: "
        "torch.save(torch.jit.load(..).state_dict(), \"weights.pt\")");
  }

  void read_attribute(const ScriptClass& declared, const std::string& name, Ref value,
                      const std::string& prefix, int depth) {
    check_name(file_, prefix + name);
    if (class_of(file_, value) != nullptr) {
      read_module(value, prefix + name + ".", depth + 1);
    } else if (declared.state.contains(name) && file_.pickle.get<pickle::None>(value) == nullptr) {
      tensors_[prefix + name] = read_tensor(file_, value, prefix + name);
    }
  }

  const TorchFile& file_;
  std::map<std::string, ScriptClasses> classes_;  // by path of the code
  std::uint64_t code_left_ = kMaxCode;
  std::size_t declared_left_ = kMaxDeclared;
  std::size_t attributes_ = 0;
  StoredTensors tensors_;
};

}  // namespace

bool holds_script_module(const TorchFile& file) {
  return class_of(file, file.pickle.root) != nullptr;
}

StoredTensors read_script_module(const TorchFile& file) { return ModuleReader(file).read(); }

}  // namespace decent
