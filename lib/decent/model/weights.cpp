#include "decent/model/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/weights/formats.h"

namespace decent {
namespace {

// Adds at most one line, however many names there are.
void add_line(std::string& message, const std::string& what, const std::vector<std::string>& all) {
  constexpr std::size_t kMaxNames = 4;
  if (!all.empty()) message += "\n  " + what + ": " + some_of(all, kMaxNames);
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

// The prefixes that wrappers put before every name: DataParallel and DistributedDataParallel,
// torch.compile.
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

// The tensors without the prefixes of wrappers, which may be nested.
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

// The model's name for a tensor of the file.
std::string renamed(const std::string& name, const WeightsChoice& choice,
                    std::set<std::string>& used) {
  for (const auto& [from, to] : choice.rename) {
    if (!name.starts_with(from)) continue;
    used.insert(from);
    return to + name.substr(from.size());
  }
  return name;
}

StoredTensors renamed(StoredTensors tensors, const WeightsChoice& choice) {
  std::set<std::string> used;
  StoredTensors others;
  for (auto& [name, tensor] : tensors) {
    const std::string other = renamed(name, choice, used);
    if (!others.emplace(other, std::move(tensor)).second) {
      throw UserError("weights_rename gives two tensors of the file the name " + in_quotes(other) +
                      ", one of them " + in_quotes(name));
    }
  }
  for (const auto& [from, to] : choice.rename) {
    if (used.contains(from)) continue;
    throw UserError("no name in the file begins with " + in_quotes(from) + " (weights_rename)" +
                    (tensors.empty() ? "" : "; the first is " + in_quotes(tensors.begin()->first)));
  }
  return others;
}

bool is_ignored(const std::string& name, const WeightsChoice& choice) {
  return std::any_of(choice.ignore.begin(), choice.ignore.end(),
                     [&](const std::string& glob) { return glob_matches(glob, name); });
}

void check_globs(const Model& model, const WeightsChoice& choice) {
  for (const std::string& glob : choice.ignore) {
    const bool fits = std::any_of(model.state().begin(), model.state().end(),
                                  [&](const auto& own) { return glob_matches(glob, own.first); });
    if (fits) continue;
    throw UserError("'" + glob + "' fits no tensor of the model (weights_ignore); the first is " +
                    in_quotes(model.state().front().first));
  }
}

// Batch norm before PyTorch 0.4.1 had no such counter. As in PyTorch, the model then keeps its own.
bool is_late_counter(const StoredTensors& tensors, const std::string& name) {
  constexpr std::string_view kCounter = "num_batches_tracked";
  if (!name.ends_with(kCounter)) return false;
  return tensors.contains(name.substr(0, name.size() - kCounter.size()) + "running_mean");
}

void check_names(const Model& model, const Model::NamedTensors& all, const StoredTensors& tensors,
                 const std::filesystem::path& path, const WeightsChoice& choice) {
  // A tied tensor is present if one of its names is.
  std::set<const void*> found;
  std::set<std::string> known;
  std::vector<std::string> missing, strange, misshapen;
  for (const auto& [name, own] : all) {
    known.insert(name);
    if (is_ignored(name, choice)) found.insert(own.unsafeGetTensorImpl());
    const auto given = tensors.find(name);
    if (given == tensors.end()) continue;
    found.insert(own.unsafeGetTensorImpl());
    if (!fits(own, given->second)) {
      misshapen.push_back(in_quotes(name) + " is " + text_of(given->second) + ", the model's " +
                          text_of(own));
    }
  }
  for (const auto& [name, own] : all) {
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

void copy_given(const Model::NamedTensors& own, const StoredTensors& tensors) {
  for (const auto& [name, tensor] : own) {
    const auto given = tensors.find(name);
    if (given != tensors.end()) copy_to(tensor, given->second);
  }
}

}  // namespace

void load_tensors(const Model& model, const Model::NamedTensors& own,
                  const std::filesystem::path& path) {
  const at::NoGradGuard no_grad;
  const WeightsFile file = read_weights(path);
  check_names(model, own, file.tensors, path, {});
  copy_given(own, file.tensors);
}

std::vector<std::string> load_weights(Model& model, const std::filesystem::path& path,
                                      const WeightsChoice& choice) {
  const at::NoGradGuard no_grad;
  try {
    std::vector<std::string> left;
    WeightsFile file = read_weights(path);
    StoredTensors tensors = renamed(unwrapped(model, std::move(file.tensors)), choice);
    check_globs(model, choice);
    std::erase_if(tensors, [&](const auto& entry) { return is_ignored(entry.first, choice); });
    check_names(model, model.state(), tensors, path, choice);
    copy_given(model.state(), tensors);
    for (const auto& [name, own] : model.state())
      if (is_ignored(name, choice)) left.push_back(name);
    return left;
  } catch (const UserError& error) {
    throw UserError("model.weights: " + std::string(error.what()));
  }
}

}  // namespace decent
