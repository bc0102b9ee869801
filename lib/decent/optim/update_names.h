#pragma once
// The names and defaults of optimizers, for make_update() and programs that configure it.

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace decent {

/// adamw, adam, sgd, ..: the names of all rules (rules/all.h), in their order.
std::span<const std::string> update_names();

/// The defaults of an optimizer's options.
struct UpdateDefaults {
  double weight_decay = 0;
  double momentum = 0;
  std::array<double, 2> betas{};
};

/// Throws UserError for an unknown name, listing the valid ones.
UpdateDefaults update_defaults(std::string_view name);

/// Whether no gradient moves a weight by more than a few learning rates in one step of this
/// optimizer. Throws as update_defaults() does.
bool update_bounded_by_lr(std::string_view name);

/// Whether that optimizer uses an option: momentum, nesterov, betas, eps, accum_iter or alpha.
/// Throws as update_defaults() does.
bool update_takes(std::string_view name, std::string_view option);

}  // namespace decent
