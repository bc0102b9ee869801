#include "decent/optim/bucket_update.h"

#include <cmath>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/bucket_kernels.h"

namespace decent {
namespace {

// An update is its coefficients: Derived::coefficients<T>(step, slice).
template <typename Derived>
class CoefficientUpdate : public BucketUpdate {
 public:
  void apply(const BucketStep& step) const override {
    if (step.scalar == Scalar::float32) {
      apply_as<float>(step);
    } else {
      apply_as<double>(step);
    }
  }

 private:
  template <typename T>
  void apply_as(const BucketStep& step) const {
    const auto& self = static_cast<const Derived&>(*this);
    std::vector<decltype(self.template coefficients<T>(step, step.slices[0]))> all;
    all.reserve(step.slices.size());
    for (const BucketSlice& slice : step.slices)
      all.push_back(self.template coefficients<T>(step, slice));
    or_cpu(step.kernels).run(step, std::span<const typename decltype(all)::value_type>(all));
  }
};

class SgdUpdate : public CoefficientUpdate<SgdUpdate> {
 public:
  explicit SgdUpdate(const SgdOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"momentum_buffer"};
    return names;
  }

  // torch's g += decay z; b = momentum b + g; x = z - lr d, expanded. The direction d is b or, with
  // nesterov, g + momentum b.
  template <typename T>
  kernels::Sgd<T> coefficients(const BucketStep& step, const BucketSlice& slice) const {
    const double lr = step.lr * slice.lr_scale;
    const double momentum = options_.momentum;
    const double new_gradient = options_.nesterov ? 1 + momentum : 1;  // in the direction
    const double old_buffer = options_.nesterov ? momentum * momentum : momentum;
    const double shrink = 1 - lr * new_gradient * slice.weight_decay;
    return {.x_from_x = static_cast<T>(step.mixing.self * shrink),
            .x_from_r = static_cast<T>(step.mixing.other * shrink),
            .x_from_g = static_cast<T>(-lr * new_gradient * step.grad_scale),
            .x_from_b = static_cast<T>(-lr * old_buffer),
            .b_from_x = static_cast<T>(step.mixing.self * slice.weight_decay),
            .b_from_r = static_cast<T>(step.mixing.other * slice.weight_decay),
            .b_from_g = static_cast<T>(step.grad_scale),
            .b_from_b = static_cast<T>(momentum)};
  }

 private:
  SgdOptions options_;
};

// What Adam and AccumAdam have in common: all but how the moments go on. `corrections` is the
// number of updates that torch's bias correction counts.
template <typename T>
kernels::Adam<T> adam_coefficients(const BucketStep& step, const BucketSlice& slice,
                                   const AdamOptions& options, double corrections) {
  using C = kernels::Coefficient<T>;
  using Kind = kernels::GradientKind;
  const double lr = step.lr * slice.lr_scale;
  const double root = std::sqrt(1 - std::pow(options.beta2, corrections));
  const double size = lr / (1 - std::pow(options.beta1, corrections)) * root;
  const bool decoupled = options.decoupled_weight_decay;
  const double shrink = decoupled ? 1 - lr * slice.weight_decay : 1;
  const double decay = decoupled ? 0 : slice.weight_decay;
  const C size_parts(size);
  const bool scaled = step.grad_scale != 1;
  return {.gradient = decay != 0 ? Kind::decayed
                      : scaled   ? Kind::scaled
                                 : Kind::as_it_is,
          .x_from_x = static_cast<T>(step.mixing.self * shrink),
          .x_from_r = static_cast<T>(step.mixing.other * shrink),
          .g_from_g = C(step.grad_scale),
          .g_from_x = C(step.mixing.self * decay),
          .g_from_r = C(step.mixing.other * decay),
          .m_from_m = C(options.beta1),
          .m_from_g = C(1 - options.beta1),
          .v_from_v = C(options.beta2),
          .v_from_g = C(1 - options.beta2),
          .step = size_parts.value,
          .step_share = size_parts.value != 0 ? size_parts.rest / size_parts.value : 0,
          .eps = C(options.eps * root)};
}

class AdamUpdate : public CoefficientUpdate<AdamUpdate> {
 public:
  explicit AdamUpdate(const AdamOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
    return names;
  }

  template <typename T>
  kernels::Adam<T> coefficients(const BucketStep& step, const BucketSlice& slice) const {
    return adam_coefficients<T>(step, slice, options_, static_cast<double>(slice.updates));
  }

 private:
  AdamOptions options_;
};

class AccumAdamUpdate : public CoefficientUpdate<AccumAdamUpdate> {
 public:
  explicit AccumAdamUpdate(const AccumAdamOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"exp_avg", "exp_avg_sq", "accum_grad"};
    return names;
  }

  template <typename T>
  kernels::AccumAdam<T> coefficients(const BucketStep& step, const BucketSlice& slice) const {
    using C = kernels::Coefficient<T>;
    const std::int64_t k = options_.accum_iter;
    const auto rounds = static_cast<double>((slice.updates - 1) / k + 1);
    const double share = 1.0 / static_cast<double>(k);
    const double beta1 = options_.adam.beta1;
    const double beta2 = options_.adam.beta2;
    kernels::Adam<T> now = adam_coefficients<T>(step, slice, options_.adam, rounds);
    now.m_from_m = C(1);
    now.v_from_v = C(1);
    return {.step = now,
            .ends_round = slice.updates % k == 0,
            .share = C(share),
            .m_from_m = static_cast<T>(beta1),
            .m_from_a = static_cast<T>(beta1 * (1 - beta1)),
            .m_from_g = static_cast<T>(beta1 * (1 - beta1) * share),
            .v_from_v = static_cast<T>(beta2),
            .v_from_a = static_cast<T>(beta2 * (1 - beta2))};
  }

 private:
  AccumAdamOptions options_;
};

void check_fraction(const char* name, double value) {
  if (value >= 0 && value < 1) return;  // not so for NaN
  throw UserError(std::string(name) + " is " + std::to_string(value) + ": it must be in [0, 1)");
}

void check_adam(const AdamOptions& options) {
  check_fraction("beta1", options.beta1);
  check_fraction("beta2", options.beta2);
  if (!(options.eps >= 0))
    throw UserError("eps is " + std::to_string(options.eps) + ": it must be >= 0");
}

}  // namespace

std::unique_ptr<BucketUpdate> make_sgd(const SgdOptions& options) {
  check_fraction("momentum", options.momentum);
  if (options.nesterov && options.momentum == 0)
    throw UserError("nesterov needs a momentum greater than 0");
  return std::make_unique<SgdUpdate>(options);
}

std::unique_ptr<BucketUpdate> make_adam(const AdamOptions& options) {
  check_adam(options);
  return std::make_unique<AdamUpdate>(options);
}

std::unique_ptr<BucketUpdate> make_accum_adam(const AccumAdamOptions& options) {
  check_adam(options.adam);
  if (options.accum_iter < 1) {
    throw UserError("accum_iter is " + std::to_string(options.accum_iter) + ": it must be >= 1");
  }
  return std::make_unique<AccumAdamUpdate>(options);
}

std::unique_ptr<BucketUpdate> make_update(std::string_view name, const UpdateOptions& options) {
  AdamOptions adam{.beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps};
  if (name == "sgd") return make_sgd({options.momentum, options.nesterov});
  adam.decoupled_weight_decay = name.ends_with('w');
  if (name == "adam" || name == "adamw") return make_adam(adam);
  if (name == "accum_adam" || name == "accum_adamw")
    return make_accum_adam({adam, options.accum_iter});
  throw UserError("unknown update '" + std::string(name) + "'; valid: " + join(update_names()));
}

std::span<const std::string> update_names() {
  static const std::vector<std::string> names = {"sgd", "adam", "adamw", "accum_adam",
                                                 "accum_adamw"};
  return names;
}

}  // namespace decent
