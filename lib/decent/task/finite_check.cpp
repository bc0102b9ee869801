#include "decent/task/finite_check.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

struct Part {
  std::string what;  // "parameter 'fc.weight'"
  at::Tensor tensor;
  bool trained = false;
};

std::vector<Part> parts_of(const Model& model) {
  std::vector<Part> parts;
  for (const auto& [name, tensor] : model.parameters()) {
    parts.push_back({"parameter '" + name + "'", tensor, tensor.requires_grad()});
  }
  for (const auto& [name, tensor] : model.buffers()) {
    if (tensor.is_floating_point()) parts.push_back({"buffer '" + name + "'", tensor});
  }
  return parts;
}

// True for elements that are not finite. Types of 8 bits have no isfinite of their own.
at::Tensor non_finite(const at::Tensor& tensor) {
  const at::Tensor values = tensor.element_size() == 1 ? tensor.to(at::kFloat) : tensor;
  return at::isfinite(values).logical_not_();
}

// Reads all at once, because each read from a GPU waits for it.
std::vector<std::int64_t> read_counts(const std::vector<at::Tensor>& counts) {
  if (counts.empty()) return {};
  const at::Tensor read = at::stack(counts).to(at::kCPU);
  const auto* numbers = read.const_data_ptr<std::int64_t>();
  return {numbers, numbers + read.numel()};
}

}  // namespace

FiniteCheck::FiniteCheck(const Model& model) {
  const at::NoGradGuard no_grad;
  std::vector<Part> parts = parts_of(model);
  std::erase_if(parts, [](const Part& part) { return part.trained; });
  std::vector<at::Tensor> counts;
  for (const Part& part : parts) counts.push_back(non_finite(part.tensor).sum());
  const std::vector<std::int64_t> found = read_counts(counts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (found[i] > 0) allowed_.emplace(parts[i].what, non_finite(parts[i].tensor));
  }
}

std::optional<std::string> FiniteCheck::find_lost(const Model& model) const {
  constexpr std::size_t kMaxNamedParts = 3;
  const at::NoGradGuard no_grad;
  const std::vector<Part> parts = parts_of(model);
  std::vector<at::Tensor> lost;
  for (const Part& part : parts) {
    const at::Tensor found = non_finite(part.tensor);
    const auto allowed = allowed_.find(part.what);
    if (allowed != allowed_.end()) found.logical_and_(allowed->second.logical_not());
    lost.push_back(found.sum());
  }
  const std::vector<std::int64_t> counts = read_counts(lost);
  std::vector<std::string> named;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    named.push_back(parts[i].what + " (" + std::to_string(counts[i]) + " of its " +
                    counted(parts[i].tensor.numel(), "value") + ")");
  }
  if (named.empty()) return std::nullopt;
  return some_of(named, kMaxNamedParts);
}

void FiniteCheck::check_trained(const Model& model, std::int64_t step) const {
  const auto lost = find_lost(model);
  if (!lost) return;
  throw Error(ExitCode::diverged,
              "training diverged: after step " + std::to_string(step) +
                  " the averaged model is not finite in " + *lost +
                  ", so that it was not exported.\nA smaller optimizer.lr or a longer "
                  "schedule.warmup_steps may help.");
}

}  // namespace decent
