#include "decent/optim/bucket_update.h"

#include <cstddef>
#include <stdexcept>
#include <type_traits>

#include "decent/core/cuda_library.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/rules/find.h"

namespace decent {
namespace {

void* element_of(void* array, std::int64_t element, Scalar scalar) {
  const std::size_t size = scalar == Scalar::float32 ? sizeof(float) : sizeof(double);
  return static_cast<std::byte*>(array) + static_cast<std::size_t>(element) * size;
}

void step_matrices(const BucketStep& step, const MatrixStep& how) {
  for (const BucketSlice& slice : step.slices) {
    if (!slice.matrix.is_one() || slice.grad == nullptr) continue;
    if (!step.matrix_work) throw std::logic_error("an update of matrices without matrix_work");
    step.matrix_work(step, how,
                     {.matrix = slice.matrix,
                      .grad = slice.grad,
                      .momentum = element_of(step.states[0], slice.offset, step.scalar),
                      .direction = element_of(step.states[1], slice.offset, step.scalar)});
  }
}

// Mixes, and returns what is left of the step.
template <class MixOnly>
BucketStep mixed_first(const BucketStep& step, const MixOnly& mix_only) {
  std::vector<BucketSlice> slices(step.slices.begin(), step.slices.end());
  for (BucketSlice& slice : slices) slice.grad = nullptr;
  BucketStep first = step;
  first.slices = slices;
  first.written = nullptr;
  if (step.mixing.mixes()) mix_only(first);
  BucketStep rest = step;
  rest.mixing = {};
  return rest;
}

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

  bool is_factored() const override { return rules::HasFactoredStep<Rule>; }

  bool needs_whole_parameters() const override {
    return rules::HasMatrixStep<Rule> || is_factored();
  }

  double step_scale(const Matrix& matrix) const override {
    if constexpr (rules::HasMatrixStep<Rule>) return Rule::step_scale(options_, matrix);
    return 1;
  }

  void apply(const BucketStep& step) const override {
    if constexpr (rules::HasMatrixStep<Rule>) step_matrices(step, Rule::matrix_step(options_));
    if constexpr (rules::HasFactoredStep<Rule>) {
      const BucketStep rest = mixed_first(step, [&](const BucketStep& first) { run(first); });
      find_directions(rest);
      return run(rest);
    }
    run(step);
  }

 private:
  template <typename T>
  using Kernels = TypedKernels<T, rules::All>;

  static rules::ParameterStep of_slice(const BucketStep& step, const BucketSlice& slice) {
    return {step.lr * slice.lr_scale, slice.weight_decay, slice.updates, slice.matrix};
  }

  void find_directions(const BucketStep& step) const {
    if (!step.factored_work) throw std::logic_error("a factored update without factored_work");
    for (const BucketSlice& slice : step.slices) {
      if (slice.grad == nullptr || slice.numel == 0) continue;
      step.factored_work(step, slice, Rule::factored_step(options_, of_slice(step, slice)));
    }
  }

  void run(const BucketStep& step) const {
    or_cpu(step.kernels).with(step.scalar, [&]<typename T>(const Kernels<T>& kernels) {
      std::vector<rules::Coefficients<Rule, T>> coefficients;
      coefficients.reserve(step.slices.size());
      for (const BucketSlice& slice : step.slices) {
        coefficients.push_back(Rule::template coefficients<T>(options_, of_slice(step, slice)));
      }
      kernels.template update<Rule>()(step, coefficients);
    });
  }

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
