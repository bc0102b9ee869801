#include "decent/onnx/classify/weight_slots.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "decent/core/script_text.h"
#include "decent/core/text.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {
namespace {

struct Entry {
  std::string_view op_type;
  std::size_t input;
  Slot slot;
  std::string_view member;  // of a module
};

constexpr std::size_t kAnyInput = 1000;

constexpr std::array kEntries = {
    Entry{"Conv", 1, Slot::weight, "weight"},
    Entry{"Conv", 2, Slot::weight, "bias"},
    Entry{"ConvTranspose", 1, Slot::weight, "weight"},
    Entry{"ConvTranspose", 2, Slot::weight, "bias"},
    Entry{"DeformConv", 1, Slot::weight, "weight"},
    Entry{"DeformConv", 3, Slot::weight, "bias"},
    Entry{"Gemm", 0, Slot::weight, "weight"},
    Entry{"Gemm", 1, Slot::weight, "weight"},
    Entry{"Gemm", 2, Slot::weight, "bias"},
    Entry{"MatMul", kAnyInput, Slot::weight, "weight"},
    Entry{"Linear", 1, Slot::weight, "weight"},
    Entry{"Linear", 2, Slot::weight, "bias"},
    Entry{"Einsum", kAnyInput, Slot::weight, "weight"},
    Entry{"BatchNormalization", 1, Slot::weight, "weight"},
    Entry{"BatchNormalization", 2, Slot::weight, "bias"},
    Entry{"BatchNormalization", 3, Slot::statistics, "running_mean"},
    Entry{"BatchNormalization", 4, Slot::statistics, "running_var"},
    Entry{"LayerNormalization", 1, Slot::weight, "weight"},
    Entry{"LayerNormalization", 2, Slot::weight, "bias"},
    Entry{"InstanceNormalization", 1, Slot::weight, "weight"},
    Entry{"InstanceNormalization", 2, Slot::weight, "bias"},
    Entry{"GroupNormalization", 1, Slot::weight, "weight"},
    Entry{"GroupNormalization", 2, Slot::weight, "bias"},
    Entry{"RMSNormalization", 1, Slot::weight, "weight"},
    Entry{"LSTM", 1, Slot::weight, "weight_ih"},
    Entry{"LSTM", 2, Slot::weight, "weight_hh"},
    Entry{"LSTM", 3, Slot::weight, "bias"},
    Entry{"GRU", 1, Slot::weight, "weight_ih"},
    Entry{"GRU", 2, Slot::weight, "weight_hh"},
    Entry{"GRU", 3, Slot::weight, "bias"},
    Entry{"RNN", 1, Slot::weight, "weight_ih"},
    Entry{"RNN", 2, Slot::weight, "weight_hh"},
    Entry{"RNN", 3, Slot::weight, "bias"},
    Entry{"PRelu", 1, Slot::weight, "weight"},
    Entry{"Gather", 0, Slot::weight, "weight"},
    Entry{"GatherND", 0, Slot::weight, "weight"},
    Entry{"GatherElements", 0, Slot::weight, "weight"},
    Entry{"Add", kAnyInput, Slot::arithmetic, "bias"},
    Entry{"Sum", kAnyInput, Slot::arithmetic, "bias"},
    Entry{"Mul", kAnyInput, Slot::arithmetic, "weight"},
    Entry{"Sub", 0, Slot::arithmetic, "bias"},
    Entry{"Div", 0, Slot::arithmetic, "weight"},
    Entry{"Sub", 1, Slot::scaling, "mean"},
    Entry{"Div", 1, Slot::scaling, "scale"},
    Entry{"Abs", 0, Slot::function, ""},
    Entry{"Clip", 0, Slot::function, ""},
    Entry{"Exp", 0, Slot::function, ""},
    Entry{"Neg", 0, Slot::function, ""},
    Entry{"Pow", 0, Slot::function, ""},
    Entry{"ReduceL2", 0, Slot::function, ""},
    Entry{"Relu", 0, Slot::function, ""},
    Entry{"ScatterElements", 0, Slot::function, ""},
    Entry{"ScatterND", 0, Slot::function, ""},
    Entry{"Sigmoid", 0, Slot::function, ""},
    Entry{"Softmax", 0, Slot::function, ""},
    Entry{"Softplus", 0, Slot::function, ""},
    Entry{"Tanh", 0, Slot::function, ""},
    Entry{"RecurrentBias", 0, Slot::view, ""},
    Entry{"Identity", 0, Slot::view, ""},
    Entry{"Transpose", 0, Slot::view, ""},
    Entry{"Reshape", 0, Slot::view, ""},
    Entry{"Flatten", 0, Slot::view, ""},
    Entry{"Squeeze", 0, Slot::view, ""},
    Entry{"Unsqueeze", 0, Slot::view, ""},
    Entry{"Expand", 0, Slot::view, ""},
    Entry{"Tile", 0, Slot::view, ""},
    Entry{"Slice", 0, Slot::view, ""},
    Entry{"Split", 0, Slot::view, ""},
    Entry{"SplitToSequence", 0, Slot::view, ""},
    Entry{"SequenceAt", 0, Slot::view, ""},
    Entry{"SequenceConstruct", kAnyInput, Slot::view, ""},
    Entry{"ConcatFromSequence", 0, Slot::view, ""},
    Entry{"Concat", kAnyInput, Slot::view, ""},
    Entry{"Cast", 0, Slot::view, ""},
    Entry{"CastLike", 0, Slot::view, ""},
    Entry{"Shape", 0, Slot::shape, ""},
    Entry{"Size", 0, Slot::shape, ""},
    Entry{"CastLike", 1, Slot::shape, ""},
};

const Entry* find_entry(const Node& node, std::size_t input) {
  if (!node.domain.empty() && node.domain != kPatternDomain) return nullptr;
  const auto found = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& entry) {
    return entry.op_type == node.op_type && (entry.input == input || entry.input == kAnyInput);
  });
  return found == kEntries.end() ? nullptr : &*found;
}

bool casts_to_floating(const Node& node) {
  const Attribute* to = node.find("to");
  const auto* type = to == nullptr ? nullptr : std::get_if<std::int64_t>(&to->value);
  return type != nullptr && is_floating(element_type(*type));
}

// Some exporters give every Gemm a bias that it multiplies by 0.
bool is_unread_bias(const Node& node, std::size_t input) {
  if (node.op_type != "Gemm" || input != 2) return false;
  const Attribute* beta = node.find("beta");
  const auto* factor = beta == nullptr ? nullptr : std::get_if<float>(&beta->value);
  return factor != nullptr && *factor == 0;
}

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

Slot slot_of(const Node& node, std::size_t input) {
  const Entry* entry = find_entry(node, input);
  if (entry == nullptr) return Slot::other;
  if (entry->slot == Slot::view && node.op_type == "Cast" && !casts_to_floating(node))
    return Slot::other;
  return is_unread_bias(node, input) ? Slot::shape : entry->slot;
}

std::string_view member_name(const Node& node, std::size_t input) {
  const Entry* entry = find_entry(node, input);
  return entry == nullptr ? "" : entry->member;
}

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
