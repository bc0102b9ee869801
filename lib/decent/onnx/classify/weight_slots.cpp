#include "decent/onnx/classify/weight_slots.h"

#include <algorithm>
#include <array>

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

}  // namespace decent::onnx
