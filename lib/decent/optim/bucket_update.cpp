#include "decent/optim/bucket_update.h"

#include <cmath>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/chunks.h"
#include "decent/optim/kernels.h"

namespace decent {
namespace {

class SgdUpdate : public TypedUpdate<SgdUpdate> {
 public:
  explicit SgdUpdate(const SgdOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"momentum_buffer"};
    return names;
  }

  template <typename T>
  void apply_as(const BucketStep& step) const {
    for_each_chunk<T>(step, [&](const Arrays<T>& a, const BucketSlice& slice, std::int64_t count) {
      const kernels::Sgd<T> c{.self = static_cast<T>(step.mixing.self),
                              .other = static_cast<T>(step.mixing.other),
                              .grad_scale = static_cast<T>(step.grad_scale),
                              .weight_decay = static_cast<T>(slice.weight_decay),
                              .momentum = static_cast<T>(options_.momentum),
                              .lr = static_cast<T>(step.lr * slice.lr_scale),
                              .nesterov = options_.nesterov};
      kernels::sgd(a.x, a.received, a.grad, a.state(0), c, count);
    });
  }

 private:
  SgdOptions options_;
};

class AdamUpdate : public TypedUpdate<AdamUpdate> {
 public:
  explicit AdamUpdate(const AdamOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
    return names;
  }

  template <typename T>
  void apply_as(const BucketStep& step) const {
    for_each_chunk<T>(step, [&](const Arrays<T>& a, const BucketSlice& slice, std::int64_t count) {
      kernels::adam(a.x, a.received, a.grad, a.state(0), a.state(1), coefficients<T>(step, slice),
                    count);
    });
  }

 private:
  template <typename T>
  kernels::Adam<T> coefficients(const BucketStep& step, const BucketSlice& slice) const {
    const double lr = step.lr * slice.lr_scale;
    const auto s = static_cast<double>(slice.updates);
    const bool decoupled = options_.decoupled_weight_decay;
    return {.self = static_cast<T>(step.mixing.self),
            .other = static_cast<T>(step.mixing.other),
            .grad_scale = static_cast<T>(step.grad_scale),
            .shrink = static_cast<T>(decoupled ? 1 - lr * slice.weight_decay : 1.0),
            .weight_decay = static_cast<T>(decoupled ? 0.0 : slice.weight_decay),
            .one_minus_beta1 = static_cast<T>(1 - options_.beta1),
            .beta2 = static_cast<T>(options_.beta2),
            .one_minus_beta2 = static_cast<T>(1 - options_.beta2),
            .step_size = static_cast<T>(lr / (1 - std::pow(options_.beta1, s))),
            .bias_correction2_sqrt = static_cast<T>(std::sqrt(1 - std::pow(options_.beta2, s))),
            .eps = static_cast<T>(options_.eps)};
  }

  AdamOptions options_;
};

class AccumAdamUpdate : public TypedUpdate<AccumAdamUpdate> {
 public:
  explicit AccumAdamUpdate(const AccumAdamOptions& options) : options_(options) {}

  const std::vector<std::string>& state_names() const override {
    static const std::vector<std::string> names = {"exp_avg", "exp_avg_sq", "accum_grad"};
    return names;
  }

  template <typename T>
  void apply_as(const BucketStep& step) const {
    for_each_chunk<T>(step, [&](const Arrays<T>& a, const BucketSlice& slice, std::int64_t count) {
      kernels::accum_adam(a.x, a.received, a.grad, a.state(0), a.state(1), a.state(2),
                          coefficients<T>(step, slice), count);
    });
  }

 private:
  template <typename T>
  kernels::AccumAdam<T> coefficients(const BucketStep& step, const BucketSlice& slice) const {
    const double lr = step.lr * slice.lr_scale;
    const std::int64_t k = options_.accum_iter;
    const auto rounds = static_cast<double>((slice.updates + k - 1) / k);
    const bool decoupled = options_.adam.decoupled_weight_decay;
    const double beta1 = options_.adam.beta1;
    const double beta2 = options_.adam.beta2;
    return {.self = static_cast<T>(step.mixing.self),
            .other = static_cast<T>(step.mixing.other),
            .grad_scale = static_cast<T>(step.grad_scale),
            .shrink = static_cast<T>(decoupled ? 1 - lr * slice.weight_decay : 1.0),
            .weight_decay = static_cast<T>(decoupled ? 0.0 : slice.weight_decay),
            .share = static_cast<T>(1.0 / static_cast<double>(k)),
            .beta1 = static_cast<T>(beta1),
            .one_minus_beta1 = static_cast<T>(1 - beta1),
            .beta2 = static_cast<T>(beta2),
            .one_minus_beta2 = static_cast<T>(1 - beta2),
            .step_size = static_cast<T>(lr / (1 - std::pow(beta1, rounds))),
            .bias_correction2_sqrt = static_cast<T>(std::sqrt(1 - std::pow(beta2, rounds))),
            .eps = static_cast<T>(options_.adam.eps),
            .ends_round = slice.updates % k == 0};
  }

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
