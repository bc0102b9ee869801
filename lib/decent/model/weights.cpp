#include "decent/model/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/quote.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/weights/formats.h"

namespace decent {
namespace {

// At most one line, however many there are.
void add_line(std::string& message, const std::string& what, const std::vector<std::string>& all) {
  constexpr std::size_t kMost = 4;
  if (!all.empty()) message += "\n  " + what + ": " + some_of(all, kMost);
}

bool fits(const at::Tensor& own, const StoredTensor& given) {
  const at::ScalarType type = scalar_type(given.dtype);
  const bool floats = own.is_floating_point() && at::isFloatingType(type);
  return own.sizes() == at::IntArrayRef(given.shape) && (floats || own.scalar_type() == type);
}

std::string text_of(const StoredTensor& tensor) {
  return std::string(name_of(tensor.dtype)) + shape_text(tensor.shape);
}
std::string text_of(const at::Tensor& tensor) {
  return dtype_text(tensor.scalar_type()) + shape_text(tensor.sizes());
}

// What wrappers put before every name: DataParallel and DistributedDataParallel, torch.compile.
constexpr std::array<std::string_view, 2> kWrappers = {"module.", "_orig_mod."};

bool all_begin_with(const StoredTensors& tensors, std::string_view prefix) {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [&](const auto& entry) {
    return entry.first.starts_with(prefix) && entry.first.size() > prefix.size();
  });
}

bool has_name_with(const Model& model, std::string_view prefix) {
  return std::any_of(model.state().begin(), model.state().end(),
                     [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

// Without the names of wrappers, of which one may be inside the other.
StoredTensors unwrapped(const Model& model, StoredTensors tensors) {
  for (std::size_t i = 0; i < kWrappers.size(); ++i) {
    for (const std::string_view prefix : kWrappers) {
      if (!all_begin_with(tensors, prefix) || has_name_with(model, prefix)) continue;
      StoredTensors shorter;
      for (auto& [name, tensor] : tensors) shorter[name.substr(prefix.size())] = std::move(tensor);
      tensors = std::move(shorter);
    }
  }
  return tensors;
}

// Batch norm of before PyTorch 0.4.1 had no such counter. As in PyTorch the model keeps its own.
bool is_late_counter(const StoredTensors& tensors, const std::string& name) {
  constexpr std::string_view kCounter = "num_batches_tracked";
  if (!name.ends_with(kCounter)) return false;
  return tensors.contains(name.substr(0, name.size() - kCounter.size()) + "running_mean");
}

void check_names(const Model& model, const StoredTensors& tensors,
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
      misshapen.push_back(in_quotes(name) + " is " + text_of(given->second) + ", the model's " +
                          text_of(own));
    }
  }
  for (const auto& [name, own] : model.state()) {
    if (!found.insert(own.unsafeGetTensorImpl()).second) continue;
    if (!is_late_counter(tensors, name)) missing.push_back(in_quotes(name));
  }
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) == 0) strange.push_back(in_quotes(name));
  }
  if (missing.empty() && strange.empty() && misshapen.empty()) return;
  std::string message =
      "'" + path.string() + "' does not fit the model '" + model.path().string() + "':";
  add_line(message, "missing", missing);
  add_line(message, "not in the model", strange);
  add_line(message, "of another shape or type", misshapen);
  throw UserError(message);
}

bool is_aligned(const StoredTensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data.data()) % size_of(tensor.dtype) == 0;
}

void copy_to(const at::Tensor& own, const StoredTensor& given) {
  if (given.data.empty()) return;
  std::vector<std::byte> aligned;
  if (!is_aligned(given)) aligned.assign(given.data.begin(), given.data.end());
  const std::byte* data = aligned.empty() ? given.data.data() : aligned.data();
  own.copy_(at::from_blob(const_cast<std::byte*>(data), given.shape, given.strides,
                          scalar_type(given.dtype)));
}

}  // namespace

void load_weights(Model& model, const std::filesystem::path& path) {
  const at::NoGradGuard no_grad;
  try {
    WeightsFile file = read_weights(path);
    const StoredTensors tensors = unwrapped(model, std::move(file.tensors));
    check_names(model, tensors, path);
    for (const auto& [name, own] : model.state()) {
      const auto given = tensors.find(name);
      if (given != tensors.end()) copy_to(own, given->second);
    }
  } catch (const UserError& error) {
    throw UserError("model.weights: " + std::string(error.what()));
  }
}

}  // namespace decent
