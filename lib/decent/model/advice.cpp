#include "decent/model/advice.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/forward_graph.h"
#include "decent/model/inspect.h"

namespace decent {
namespace {

using NamedTensors = Model::NamedTensors;

bool mentions_one_of(const std::string& reason, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return reason.find(word) != std::string::npos; });
}

// LibTorch's messages about mixed types: in a product of matrices, in a convolution, in an operator
// that does not mix types, in an operator that lacks the type.
bool is_about_types(const std::string& reason) {
  return mentions_one_of(
      reason, {"same dtype", "Input type (", "expected scalar type", "' not implemented for '",
               "Got unsupported ScalarType", "mixed dtype", "must have the type"});
}

// LibTorch's names for an element type: its own, the one in C++, and the one in Python.
std::vector<std::string> names_of(at::ScalarType type) {
  std::vector<std::string> names = {c10::toString(type), dtype_text(type)};
  if (type == at::kByte) names.emplace_back("unsigned char");
  if (type == at::kChar) names.emplace_back("signed char");
  if (type == at::kShort) names.emplace_back("short");
  if (type == at::kInt) names.emplace_back("int");
  if (type == at::kLong) names.emplace_back("long");
  if (type == at::kFloat) names.emplace_back("float");
  if (type == at::kDouble) names.emplace_back("double");
  return names;
}

bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

bool names_type(const std::string& reason, at::ScalarType type) {
  const std::vector<std::string> names = names_of(type);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return has_word(reason, name); });
}

bool is_about_indices(const std::string& reason) {
  return mentions_one_of(reason, {"argument #1 'indices' to have one of the following scalar types",
                                  "tensors used as indices must be"});
}

bool is_about_channels(const std::string& reason) {
  return mentions_one_of(reason, {"expected input["}) && mentions_one_of(reason, {" channels"});
}

// The floating-point type in which the model computes; nothing if it has no such parameter.
std::optional<at::ScalarType> type_of_model(const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters) {
    if (parameter.is_floating_point()) return parameter.scalar_type();
  }
  return std::nullopt;
}

// The order of dimensions that moves channels from the last place to the second.
std::string channels_second(std::int64_t dims) {
  std::string order = "0, " + std::to_string(dims - 1);
  for (std::int64_t dim = 1; dim + 1 < dims; ++dim) order += ", " + std::to_string(dim);
  return "(" + order + ")";
}

// The first weight of a convolution over as many dimensions, [channels out, channels in, ..].
const at::Tensor* find_convolution(const at::Tensor& field, const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters) {
    if (parameter.dim() == field.dim() && field.dim() >= 3) return &parameter;
  }
  return nullptr;
}

bool has_channels_last(const at::Tensor& field, const NamedTensors& parameters) {
  const at::Tensor* weight = find_convolution(field, parameters);
  return weight != nullptr && field.size(1) != weight->size(1) && field.size(-1) == weight->size(1);
}

// Whether these are images of one channel without a dimension for it.
bool lacks_channel(const std::string& reason, const at::Tensor& field) {
  std::vector<std::int64_t> unbatched = field.sizes().vec();
  unbatched.insert(unbatched.begin(), 1);
  return field.dim() == 3 && reason.find("expected input" + shape_text(unbatched) +
                                         " to have 1 channels") != std::string::npos;
}

std::string cast(at::ScalarType from, at::ScalarType to) {
  const std::string type = ".astype('" + dtype_text(to) + "')";
  const bool are_pixels = from == at::kByte && at::isFloatingType(to);
  return are_pixels ? type + " / 255" : type;
}

/// What is wrong with a field, and the NumPy expression that repairs it.
struct Mending {
  std::vector<std::string> faults;
  std::string expression;
};

void mend_layout(const std::string& reason, const at::Tensor& field, const NamedTensors& parameters,
                 Mending& mending) {
  if (has_channels_last(field, parameters)) {
    mending.faults.emplace_back(
        "looks as if its channels stood last (the model wants them second)");
    mending.expression =
        "np.transpose(" + mending.expression + ", " + channels_second(field.dim()) + ")";
  } else if (lacks_channel(reason, field)) {
    mending.faults.emplace_back("has no dimension for the channel");
    mending.expression += "[:, None]";
  }
}

void mend_type(const at::Tensor& field, at::ScalarType wanted, Mending& mending) {
  if (field.scalar_type() == wanted) return;
  mending.faults.push_back("is " + dtype_text(field.scalar_type()) + " (the model wants " +
                           dtype_text(wanted) + ")");
  mending.expression += cast(field.scalar_type(), wanted);
}

bool may_be_index(const at::Tensor& field) {
  return field.scalar_type() == at::kLong || field.scalar_type() == at::kInt;
}

Mending mending_of(const std::string& field, const at::Tensor& tensor, const std::string& reason,
                   const NamedTensors& parameters) {
  Mending mending{.faults = {}, .expression = field};
  const auto type = type_of_model(parameters);
  if (is_about_indices(reason)) {
    if (!may_be_index(tensor)) mend_type(tensor, at::kLong, mending);
    return mending;
  }
  mend_layout(reason, tensor, parameters, mending);
  // If LibTorch complained only about the layout, it would complain about the type next.
  const bool is_of_a_wrong_type =
      is_about_types(reason) && names_type(reason, tensor.scalar_type());
  if (type && (is_of_a_wrong_type || !mending.faults.empty())) {
    mend_type(tensor, *type, mending);
  }
  return mending;
}

std::string in_brackets(const std::vector<std::string>& operators) {
  return operators.empty() ? "" : " (" + join(operators) + ")";
}

bool mentions(const std::string& reason, std::string_view word) {
  return reason.find(word) != std::string::npos;
}

}  // namespace

std::string data_advice(const std::string& reason, std::span<const ForwardInput> inputs,
                        std::span<const at::Tensor> tensors, const NamedTensors& parameters) {
  if (!is_about_types(reason) && !is_about_indices(reason) && !is_about_channels(reason)) return "";
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& field = inputs[i].field;
    const Mending mending = mending_of(field, tensors[i], reason, parameters);
    if (mending.faults.empty()) continue;
    text += "\nField '" + field + "' " + join(mending.faults, " and ") +
            ". Store it in the data file as " + mending.expression;
    if (mending.expression == field + cast(at::kByte, at::kFloat)) {
      text += "\nWithout another file: `data.transforms: [to_float: " +
              (field == "x" ? "{}" : "{field: " + field + "}") + "]`";
    }
  }
  return text;
}

std::string device_advice(const std::string& reason, const torch::jit::Module& module,
                          at::Device device) {
  const bool mixes = mentions(reason, "cpu") || mentions(reason, "CPU");
  if (device.is_cpu() || !mixes) return "";
  const std::vector<std::string> found = find_cpu_operators(*forward_graph(module));
  return "\nThe model makes tensors on the CPU" + in_brackets(found) +
         ": torch.jit.trace writes its device into the file, and without device=.. the CPU is "
         "taken.\nMake them where an input is (device=x.device) and export with torch.jit.script, "
         "or set model.device: cpu.";
}

std::optional<std::string> gpu_wish(const std::string& reason, const torch::jit::Module& module,
                                    at::Device device) {
  if (!device.is_cpu() || !(mentions(reason, "CUDA") || mentions(reason, "cuda")))
    return std::nullopt;
  const std::vector<std::string> found = find_gpu_operators(*forward_graph(module));
  return "its code makes tensors on a GPU" + in_brackets(found) +
         ", and it runs on the CPU.\nWrite device=x.device in its code, which is where an input "
         "is; a model that is traced must be traced on the CPU (model.cpu(), CPU inputs). On a GPU "
         "it "
         "trains as it is, with model.device: cuda.";
}

}  // namespace decent
