#include "decent/optim/bucket_update.h"

#include <type_traits>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/rules/all.h"

namespace decent {
namespace {

// A rule with its options: works the coefficients out, the kernels do the rest.
template <class Rule>
class RuleUpdate final : public BucketUpdate {
 public:
  explicit RuleUpdate(const typename Rule::Options& options) : options_(options) {
    Rule::check(options);
  }

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names(Rule::kStates.begin(), Rule::kStates.end());
    return names;
  }

  void apply(const BucketStep& step) const override {
    or_cpu(step.kernels).with(step.scalar, [&]<typename T>(const Kernels<T>& kernels) {
      std::vector<rules::Coefficients<Rule, T>> coefficients;
      coefficients.reserve(step.slices.size());
      for (const BucketSlice& slice : step.slices) {
        coefficients.push_back(Rule::template coefficients<T>(
            options_, {step.lr * slice.lr_scale, slice.weight_decay, slice.updates}));
      }
      kernels.template update<Rule>()(step, coefficients);
    });
  }

 private:
  template <typename T>
  using Kernels = TypedKernels<T, rules::All>;

  typename Rule::Options options_;
};

// Calls visit(key in a recipe, the rule's own option, what the user gave) for each option that the
// rule has.
template <class Options, class Visit>
void visit_options(Options& own, const UpdateOptions& given, const Visit& visit) {
  if constexpr (requires { own.momentum; }) visit("momentum", own.momentum, given.momentum);
  if constexpr (requires { own.nesterov; }) visit("nesterov", own.nesterov, given.nesterov);
  if constexpr (requires { own.beta1; }) visit("betas", own.beta1, given.beta1);
  if constexpr (requires { own.beta2; }) visit("betas", own.beta2, given.beta2);
  if constexpr (requires { own.eps; }) visit("eps", own.eps, given.eps);
  if constexpr (requires { own.accum_iter; }) visit("accum_iter", own.accum_iter, given.accum_iter);
  if constexpr (requires { own.alpha; }) visit("alpha", own.alpha, given.alpha);
}

// Calls found(the rule as a type, its name) where the rule goes by that name.
template <class Rule, class Found>
bool find_in(std::string_view wanted, const Found& found) {
  for (const rules::Name& name : Rule::kNames) {
    if (name.name != wanted) continue;
    found(std::type_identity<Rule>(), name);
    return true;
  }
  return false;
}

template <class... Rules, class Found>
void find_rule(rules::TypeList<Rules...>, std::string_view wanted, const Found& found) {
  if ((find_in<Rules>(wanted, found) || ...)) return;
  throw UserError("unknown update '" + std::string(wanted) + "'; valid: " + join(update_names()));
}

template <class... Rules>
std::vector<std::string> names_of(rules::TypeList<Rules...>) {
  std::vector<std::string> names;
  const auto add = [&](const auto& of_rule) {
    for (const rules::Name& name : of_rule) names.emplace_back(name.name);
  };
  (add(Rules::kNames), ...);
  return names;
}

}  // namespace

std::unique_ptr<BucketUpdate> make_update(std::string_view name, const UpdateOptions& given) {
  std::unique_ptr<BucketUpdate> made;
  find_rule(rules::All(), name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    typename Rule::Options options;
    if constexpr (requires { options.decoupled_weight_decay; })
      options.decoupled_weight_decay = own.decoupled_weight_decay;
    visit_options(options, given, [](std::string_view, auto& option, const auto& value) {
      option = value.value_or(option);
    });
    made = std::make_unique<RuleUpdate<Rule>>(options);
  });
  return made;
}

std::span<const std::string> update_names() {
  static const std::vector<std::string> names = names_of(rules::All());
  return names;
}

UpdateDefaults update_defaults(std::string_view name) {
  UpdateDefaults defaults;
  find_rule(rules::All(), name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    defaults = {.weight_decay = own.weight_decay,
                .momentum = own.momentum,
                .betas = {rules::AdamOptions().beta1, rules::AdamOptions().beta2}};
    const typename Rule::Options options;
    if constexpr (requires { options.beta2; }) defaults.betas = {options.beta1, options.beta2};
  });
  return defaults;
}

bool update_takes(std::string_view name, std::string_view option) {
  bool takes = false;
  find_rule(rules::All(), name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name&) {
    typename Rule::Options options;
    visit_options(options, {}, [&](std::string_view key, const auto&, const auto&) {
      takes = takes || key == option;
    });
  });
  return takes;
}

}  // namespace decent
