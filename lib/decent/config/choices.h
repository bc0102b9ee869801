#pragma once
// The names of the recipe's enum values: one table for each enum, used to parse, to print, and to
// list the valid values.

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decent/config/recipe.h"

namespace decent {

template <class E>
struct Choice {
  E value;
  std::string_view name;
};

constexpr auto choices(MemoryFormat) {
  using E = MemoryFormat;
  return std::to_array<Choice<E>>(
      {{E::contiguous, "contiguous"}, {E::channels_last, "channels_last"}});
}

constexpr auto choices(ExportMode) {
  using E = ExportMode;
  return std::to_array<Choice<E>>({{E::eval, "eval"}, {E::train, "train"}});
}

constexpr auto choices(OnError) {
  using E = OnError;
  return std::to_array<Choice<E>>({{E::fail, "fail"}, {E::skip, "skip"}});
}

constexpr auto choices(HoldoutPart) {
  using E = HoldoutPart;
  return std::to_array<Choice<E>>({{E::train, "train"}, {E::eval, "eval"}});
}

constexpr auto choices(DeviceName) {
  using E = DeviceName;
  return std::to_array<Choice<E>>({{E::automatic, "auto"}, {E::cpu, "cpu"}, {E::cuda, "cuda"}});
}

constexpr auto choices(LrScaling) {
  using E = LrScaling;
  return std::to_array<Choice<E>>({{E::none, "none"}, {E::sqrt, "sqrt"}});
}

constexpr auto choices(ClipScope) {
  using E = ClipScope;
  return std::to_array<Choice<E>>({{E::global, "global"}, {E::bucket, "bucket"}});
}

constexpr auto choices(UpdateMode) {
  using E = UpdateMode;
  return std::to_array<Choice<E>>({{E::automatic, "auto"},
                                   {E::in_backward, "in_backward"},
                                   {E::after_backward, "after_backward"}});
}

constexpr auto choices(BackendName) {
  using E = BackendName;
  return std::to_array<Choice<E>>({{E::automatic, "auto"}, {E::gloo, "gloo"}, {E::nccl, "nccl"}});
}

constexpr auto choices(AmpDType) {
  using E = AmpDType;
  return std::to_array<Choice<E>>({{E::off, "off"}, {E::bf16, "bf16"}, {E::fp16, "fp16"}});
}

constexpr auto choices(TrackingService) {
  using E = TrackingService;
  return std::to_array<Choice<E>>({{E::mlflow, "mlflow"},
                                   {E::wandb, "wandb"},
                                   {E::trackio, "trackio"},
                                   {E::tensorboard, "tensorboard"},
                                   {E::prometheus, "prometheus"}});
}

constexpr auto choices(ProgressStyle) {
  using E = ProgressStyle;
  return std::to_array<Choice<E>>(
      {{E::automatic, "auto"}, {E::bar, "bar"}, {E::plain, "plain"}, {E::off, "off"}});
}

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) { choices(value); };

/// The name that the recipe uses, e.g. "one-peer-exp".
template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  for (const auto& choice : choices(E{})) {
    if (choice.value == value) return choice.name;
  }
  throw std::logic_error("an enum value without a name");
}

/// The value called `name`; nothing if there is none.
template <NamedEnum E>
constexpr std::optional<E> value_named(std::string_view name) {
  for (const auto& choice : choices(E{})) {
    if (choice.name == name) return choice.value;
  }
  return std::nullopt;
}

/// All names, in the order of the table.
template <NamedEnum E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& choice : choices(E{})) names.emplace_back(choice.name);
  return names;
}

}  // namespace decent
