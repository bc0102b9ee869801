#include "decent/optim/bucket_update.h"

#include <type_traits>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/rules/find.h"

namespace decent {
namespace {

// A rule with its options. It computes the coefficients, and the kernels do the rest.
template <class Rule>
class RuleUpdate final : public BucketUpdate {
 public:
  explicit RuleUpdate(const typename Rule::Options& options) : options_(options) {
    for (const auto& option : Rule::kOptions) rules::check(options, option);
    if constexpr (requires { Rule::check(options); }) Rule::check(options);
  }

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names(Rule::kStates.begin(), Rule::kStates.end());
    return names;
  }

  bool steps_bounded_by_lr() const override { return Rule::kStepBoundedByLr; }

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

void check_names(const UpdateOptions& given) {
  for (const auto& [name, value] : given) {
    if (usual_update_options().contains(name)) continue;
    std::vector<std::string> valid;
    for (const UpdateOption& option : update_options()) valid.push_back(option.name);
    throw UserError("no optimizer has an option '" + name + "'; valid: " + join(valid));
  }
}

}  // namespace

std::unique_ptr<BucketUpdate> make_update(std::string_view name, const UpdateOptions& given) {
  check_names(given);
  std::unique_ptr<BucketUpdate> made;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    typename Rule::Options options;
    if constexpr (requires { options.decoupled_weight_decay; })
      options.decoupled_weight_decay = own.decoupled_weight_decay;
    for (const auto& option : Rule::kOptions) {
      const auto found = given.find(option.name);
      if (found != given.end()) rules::set(options, option, found->second);
    }
    made = std::make_unique<RuleUpdate<Rule>>(options);
  });
  return made;
}

}  // namespace decent
