#include "decent/model/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <map>
#include <set>

#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/inspect.h"

namespace decent {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

std::string quoted(const std::filesystem::path& path) {
  return "model.weights: '" + path.string() + "'";
}

Tensors read_safetensors(const std::filesystem::path& path) {
  const MappedFile file(path);
  Tensors tensors;
  for (const TensorView& view : parse_safetensors(file.bytes(), path.string()).tensors) {
    // Not aligned in the file, and gone with it.
    const at::Tensor bytes = at::from_blob(const_cast<std::byte*>(view.data.data()),
                                           {static_cast<std::int64_t>(view.data.size())}, at::kByte)
                                 .clone();
    tensors[view.name] = bytes.numel() == 0 ? at::empty(view.shape, scalar_type(view.dtype))
                                            : bytes.view(scalar_type(view.dtype)).view(view.shape);
  }
  return tensors;
}

Tensors read_module(const std::filesystem::path& path) {
  const torch::jit::Module module = torch::jit::load(path.string(), at::kCPU);
  Tensors tensors;
  for (const auto& entry : module.named_parameters()) tensors[entry.name] = entry.value;
  for (const auto& entry : module.named_buffers()) tensors[entry.name] = entry.value;
  return tensors;
}

Tensors read_state_dict(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto* begin = reinterpret_cast<const char*>(file.bytes().data());
  const c10::IValue value = torch::jit::pickle_load({begin, begin + file.bytes().size()});
  if (!value.isGenericDict()) throw UserError(quoted(path) + " holds no state_dict");
  Tensors tensors;
  for (const auto& entry : value.toGenericDict()) {
    if (!entry.key().isString() || !entry.value().isTensor()) {
      throw UserError(quoted(path) + " holds more than a state_dict of names and tensors");
    }
    tensors[entry.key().toStringRef()] = entry.value().toTensor();
  }
  return tensors;
}

Tensors read_tensors(const std::filesystem::path& path) {
  if (path.extension() == ".safetensors") return read_safetensors(path);
  if (path.extension() != ".pt" && path.extension() != ".pth") {
    throw UserError(quoted(path) + ": expected a .safetensors or .pt file");
  }
  if (!std::filesystem::is_regular_file(path)) throw UserError(quoted(path) + " does not exist");
  try {
    return holds_torchscript(path) ? read_module(path) : read_state_dict(path);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception&) {
    // LibTorch's reader does not know the attribute that state_dict() hangs on its dictionary.
    throw UserError(
        quoted(path) +
        " is neither a TorchScript module nor a plain dictionary of tensors.\nFrom "
        "Python, write one with torch.save(dict(model.state_dict()), \"weights.pt\"), or "
        "a .safetensors file");
  }
}

// At most one line, however many there are.
void add_line(std::string& message, const std::string& what, const std::vector<std::string>& all) {
  constexpr std::size_t kMost = 4;
  if (all.empty()) return;
  const std::size_t shown = std::min(kMost, all.size());
  message += "\n  " + what + ": " + join(std::span(all).first(shown));
  if (shown < all.size()) message += " and " + std::to_string(all.size() - shown) + " more";
}

bool fits(const at::Tensor& own, const at::Tensor& given) {
  const bool floats = own.is_floating_point() && given.is_floating_point();
  return own.sizes() == given.sizes() && (floats || own.scalar_type() == given.scalar_type());
}

std::string text_of(const at::Tensor& tensor) {
  return dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes());
}

void check_names(const TorchScriptModel& model, const Tensors& tensors,
                 const std::filesystem::path& path) {
  // A tied tensor is there where one of its names is.
  std::set<const void*> found;
  std::set<std::string> known;
  std::vector<std::string> missing, strange, misshapen;
  for (const auto& [name, own] : model.state()) {
    known.insert(name);
    const auto given = tensors.find(name);
    if (given == tensors.end()) continue;
    found.insert(own.unsafeGetTensorImpl());
    if (!fits(own, given->second)) {
      misshapen.push_back(name + " is " + text_of(given->second) + ", the model's " + text_of(own));
    }
  }
  for (const auto& [name, own] : model.state()) {
    if (found.insert(own.unsafeGetTensorImpl()).second) missing.push_back(name);
  }
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) == 0) strange.push_back(name);
  }
  if (missing.empty() && strange.empty() && misshapen.empty()) return;
  std::string message = quoted(path) + " does not fit the model '" + model.path().string() + "':";
  add_line(message, "missing", missing);
  add_line(message, "not in the model", strange);
  add_line(message, "of another shape or type", misshapen);
  throw UserError(message);
}

}  // namespace

void load_weights(TorchScriptModel& model, const std::filesystem::path& path) {
  const at::NoGradGuard no_grad;
  const Tensors tensors = read_tensors(path);
  check_names(model, tensors, path);
  for (const auto& [name, own] : model.state()) {
    const auto given = tensors.find(name);
    if (given != tensors.end()) at::Tensor(own).copy_(given->second);
  }
}

}  // namespace decent
