#include "decent/optim/bucket_update.h"

#include <type_traits>

#include "decent/core/cuda_library.h"
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
    check_options(options, Rule::kOptions);
    if constexpr (rules::HasConflicts<Rule>) {
      if (const auto conflict = Rule::conflict(options))
        throw UserError(std::string(conflict->option) + ": " + conflict->text());
    }
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

}  // namespace

std::unique_ptr<BucketUpdate> make_update(std::string_view name, const Options& given) {
  check_known(given, update_table(), "optimizer");
  std::unique_ptr<BucketUpdate> made;
  rules::find(name, [&]<class Rule>(std::type_identity<Rule>, const rules::Name& own) {
    typename Rule::Options options;
    if constexpr (requires { options.decoupled_weight_decay; })
      options.decoupled_weight_decay = own.decoupled_weight_decay;
    assign_options(options, Rule::kOptions, given);
    made = std::make_unique<RuleUpdate<Rule>>(options);
  });
  return made;
}

void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing,
         const BucketKernels* kernels) {
  if (mixing.in_place) return or_cpu(kernels).in_pieces(numel, mixing.in_place);
  if (mixing.received == nullptr) return;
  or_cpu(kernels).with(scalar, [&]<typename T>(const TypedKernels<T, rules::All>& typed) {
    typed.mix(static_cast<T*>(x), static_cast<const T*>(mixing.received),
              static_cast<T>(mixing.self), static_cast<T>(mixing.other), numel);
  });
}

const BucketKernels& cuda_kernels() {
  static const BucketKernels* const kernels =
      cuda_function<const BucketKernels*()>("decent_cuda_bucket_kernels")();
  return *kernels;
}

}  // namespace decent
