#pragma once
// Tensors with their names: those of a model, and those of a checkpoint.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace decent {

/// Names and tensors, in order of registration.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The parameters that require a gradient, and those that do not, each in the same order.
NamedTensors trained_part(const NamedTensors& parameters);
NamedTensors untrained_part(const NamedTensors& parameters);

/// The size of all elements, in bytes.
std::int64_t bytes_of(const NamedTensors& tensors);

// ---- names in checkpoints ----

inline constexpr std::string_view kModelPrefix = "model.";          // parameters, trained or not
inline constexpr std::string_view kBufferPrefix = "buffer.";        // of the model
inline constexpr std::string_view kOptimizerPrefix = "optimizer.";  // then parameter and state
inline constexpr std::string_view kScalerPrefix = "scaler.";        // of the loss
inline constexpr std::string_view kExchangePrefix = "exchange.";    // what its method remembers
inline constexpr std::string_view kEmaPrefix = "ema.";              // of a trained parameter
inline constexpr std::string_view kLogPrefix = "log.";              // of the next train line

/// The name with its prefix, e.g. tensor_name(kModelPrefix, "conv.weight") is "model.conv.weight".
inline std::string tensor_name(std::string_view prefix, std::string_view name) {
  return std::string(prefix).append(name);
}

/// The name of an optimizer state, e.g. "optimizer.conv.weight.exp_avg".
inline std::string optimizer_tensor_name(std::string_view parameter, std::string_view state) {
  return tensor_name(kOptimizerPrefix, parameter).append(".").append(state);
}

/// The name of a parameter's number of updates; only trained parameters have it.
inline std::string update_count_name(std::string_view parameter) {
  return optimizer_tensor_name(parameter, "step");
}

/// The tensors whose names begin with `prefix`, under their names without it.
inline NamedTensors part_of(const NamedTensors& tensors, std::string_view prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) part.emplace_back(name.substr(prefix.size()), tensor);
  }
  return part;
}

/// Whether the tensor is a worker's own even if all workers have the same parameters and optimizer
/// states: a buffer, state of an exchange, or numbers for the next train line.
inline bool is_own(std::string_view name) {
  return name.starts_with(kBufferPrefix) || name.starts_with(kExchangePrefix) ||
         name.starts_with(kLogPrefix);
}

/// The tensors of a worker's state that are its own, and those that all workers share.
struct StateParts {
  NamedTensors own;
  NamedTensors shared;
};

inline StateParts parts_of(const NamedTensors& state) {
  StateParts parts;
  for (const auto& entry : state) (is_own(entry.first) ? parts.own : parts.shared).push_back(entry);
  return parts;
}

/// A model's parameters, then its buffers.
inline NamedTensors model_tensors(const NamedTensors& parameters, const NamedTensors& buffers) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : parameters)
    tensors.emplace_back(tensor_name(kModelPrefix, name), tensor);
  for (const auto& [name, tensor] : buffers)
    tensors.emplace_back(tensor_name(kBufferPrefix, name), tensor);
  return tensors;
}

// ---- buffers that a module's forward replaces by new tensors ----

/// `held` are a module's buffers as they were taken over, `now` its current ones. If forward
/// replaced a buffer by a new tensor (self.count = self.count + 1), its value is copied to the held
/// memory, and the new tensor becomes a view of that memory. Throws UserError if shape or dtype
/// changed.
void settle_buffers(const NamedTensors& held, const NamedTensors& now);

}  // namespace decent
