#pragma once
// The optimizers by name, as recipes and make_update() know them.

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace decent {

/// adamw, adam, sgd, ..: the names of all rules (rules/all.h), in their order.
std::span<const std::string> update_names();

/// What a recipe takes for an optimizer where it says nothing.
struct UpdateDefaults {
  double weight_decay = 0;
  double momentum = 0;
  std::array<double, 2> betas{};
};

/// Throws UserError where no optimizer is called `name`, listing those that are.
UpdateDefaults update_defaults(std::string_view name);

/// Whether that optimizer looks at an option, by its key in recipes (momentum, betas, ..).
/// Throws as update_defaults() does.
bool update_takes(std::string_view name, std::string_view option);

}  // namespace decent
