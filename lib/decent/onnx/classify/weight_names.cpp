#include "decent/onnx/classify/weight_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "decent/core/script_text.h"
#include "decent/core/text.h"

namespace decent::onnx {
namespace {

// Whether a name is only a number: "val_12", "_val_12", "const_3", "constant_3", "node_5", "t12",
// "12", or "const_fold_opt__12" as tf2onnx writes it.
bool is_numbered(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kStems = {
      "", "val", "_val", "const", "constant", "Constant", "node", "tensor", "initializer"};
  std::string_view stem = name;
  while (!stem.empty() && is_digit(stem.back())) stem.remove_suffix(1);
  if (stem.size() == name.size() && !name.empty()) return false;
  if (stem.ends_with("__") && stem.find('.') == std::string_view::npos) return true;
  while (!stem.empty() && stem.back() == '_') stem.remove_suffix(1);
  return std::find(kStems.begin(), kStems.end(), stem) != kStems.end();
}

// Removes leading numbers, which are the names of members of an nn.Sequential at the root:
// "0.weight", "1.0.gamma".
std::string_view without_numbers_first(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    if (dot == 0 ||
        !std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(dot), is_digit))
      break;
    name.remove_prefix(dot + 1);
  }
  return name;
}

// "['', 'encoder', 'encoder.fc', 'linear']": the last module, before the operator.
std::string last_module(std::string_view scopes) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t begin = scopes.find('\'');
    if (begin == std::string_view::npos) break;
    const std::size_t end = scopes.find('\'', begin + 1);
    if (end == std::string_view::npos) break;
    parts.push_back(scopes.substr(begin + 1, end - begin - 1));
    scopes.remove_prefix(end + 1);
  }
  return parts.size() < 2 ? "" : std::string(parts[parts.size() - 2]);
}

// "/encoder/fc/MatMul" -> "encoder.fc"; "/layer1/layer1.0/conv1/Conv" -> "layer1.0.conv1", since
// members of a Sequential repeat its name.
std::string folders_of(std::string_view node) {
  if (node.empty() || node.front() != '/') return "";
  std::vector<std::string> steps;
  node.remove_prefix(1);
  for (std::size_t end = node.find('/'); end != std::string_view::npos; end = node.find('/')) {
    std::string step(node.substr(0, end));
    const bool repeats = !steps.empty() && step.rfind(steps.back() + ".", 0) == 0;
    if (repeats) steps.pop_back();
    steps.push_back(std::move(step));
    node.remove_prefix(end + 1);
  }
  return join(steps, ".");
}

// Whether the name belongs to the module itself.
bool is_reserved(std::string_view first_step) {
  return first_step == "training" || first_step == "forward";
}

}  // namespace

bool is_module_name(std::string_view name) {
  if (name.empty() || is_numbered(name)) return false;
  name = without_numbers_first(name);
  if (name.empty()) return false;
  if (name.front() != '_' && !std::isalpha(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '_' || c == '.');
  });
}

bool is_variable_of_tensorflow(std::string_view name) {
  return name.find("/ReadVariableOp") != std::string_view::npos;
}

std::string module_of(const Node& node) {
  const auto scopes = node.metadata.find("pkg.torch.onnx.name_scopes");
  return scopes != node.metadata.end() ? last_module(scopes->second) : folders_of(node.name);
}

std::string TensorNames::try_make(std::string_view name) {
  std::string path = module_path(name);
  // The module's own methods begin with "_".
  if (path.front() == '_') path = "p" + path;
  if (!is_free(path)) return "";
  take(path);
  return path;
}

std::string TensorNames::make(std::string_view name) {
  if (std::string path = try_make(name); !path.empty()) return path;
  std::string flat = module_path(name);
  std::replace(flat.begin(), flat.end(), '.', '_');
  for (int number = 1;; ++number) {
    const std::string suffix = "_" + std::to_string(number);
    for (const std::string& stem : {std::string(name), flat}) {
      if (std::string path = try_make(stem + suffix); !path.empty()) return path;
    }
  }
}

bool TensorNames::is_free(const std::string& path) const {
  if (tensors_.count(path) != 0 || folders_.count(path) != 0) return false;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    if (tensors_.count(path.substr(0, dot)) != 0) return false;
  }
  return !is_reserved(path.substr(0, path.find('.')));
}

void TensorNames::take(const std::string& path) {
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    folders_.insert(path.substr(0, dot));
  tensors_.insert(path);
}

}  // namespace decent::onnx
