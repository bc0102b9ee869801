#pragma once
// The names, options and defaults of optimizers, for make_update() and programs that configure it.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace decent {

/// adamw, adam, sgd, ..: the names of all rules (rules/all.h), in their order.
std::span<const std::string> update_names();

/// The value of an optimizer's option. An integer is taken where a number is expected.
using UpdateValue = std::variant<bool, std::int64_t, double, std::array<double, 2>>;

/// Options by their names: {{"betas", std::array{0.9, 0.95}}, {"eps", 1e-6}}.
using UpdateOptions = std::map<std::string, UpdateValue, std::less<>>;

/// An option of some optimizers.
struct UpdateOption {
  std::string name;
  std::string meaning;  // a phrase
  UpdateValue usual;    // the default of the first optimizer that takes it, in recipes
  double at_least = 0;  // of numbers, and of each of two
  double below = std::numeric_limits<double>::infinity();
};

/// The options of all optimizers, each once.
const std::vector<UpdateOption>& update_options();

/// The usual value of every option: what a recipe shows for options that its optimizer does not
/// take.
const UpdateOptions& usual_update_options();

/// What recipes use where they give nothing.
struct UpdateDefaults {
  double weight_decay = 0;
  UpdateOptions options;  // those that the optimizer takes
};

/// Throws UserError for an unknown name, listing the valid ones.
UpdateDefaults update_defaults(std::string_view name);

/// Whether no gradient moves a weight by more than a few learning rates in one step of this
/// optimizer. Throws as update_defaults() does.
bool update_bounded_by_lr(std::string_view name);

/// Whether that optimizer takes an option. Throws as update_defaults() does.
bool update_takes(std::string_view name, std::string_view option);

}  // namespace decent
