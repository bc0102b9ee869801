// torch.optim.lr_scheduler.StepLR and ExponentialLR

#include <cmath>

#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

constexpr double kGammaOfSteps = 0.1;

// Both have a gamma. Torch takes any number, but at 0 nothing would be learned.
template <class Options>
constexpr Option<Options> gamma(std::string_view example) {
  return {.name = "gamma",
          .meaning = "Factor for the learning rate; null: 0.1 for step",
          .member = &Options::gamma,
          .range = above(0),
          .example = example};
}

struct StepOptions {
  std::optional<std::int64_t> step_size;
  std::optional<double> gamma;
};

struct Step {
  using Options = StepOptions;
  static constexpr std::string_view kName = "step";
  static constexpr std::array kOptions = {
      Option<Options>{.name = "step_size",
                      .meaning = "Multiply the learning rate by gamma every N updates",
                      .member = &Options::step_size,
                      .range = at_least(1),
                      .example = "1000"},
      gamma<Options>(/*example=*/"")};

  static void resolve(Options& options, const Rest&) {
    if (!options.gamma) options.gamma = kGammaOfSteps;
  }

  static Schedule make(const Options& options, const Rest& of) {
    return [lr = of.lr, size = *options.step_size, gamma = *options.gamma](std::int64_t t) {
      const std::int64_t falls = (t - 1) / size;
      return lr * std::pow(gamma, static_cast<double>(falls));
    };
  }
};

struct ExponentialOptions {
  std::optional<double> gamma;
};

struct Exponential {
  using Options = ExponentialOptions;
  static constexpr std::string_view kName = "exponential";
  static constexpr std::array kOptions = {gamma<Options>(/*example=*/"0.999")};

  static Schedule make(const Options& options, const Rest& of) {
    return [lr = of.lr, gamma = *options.gamma](std::int64_t t) {
      return lr * std::pow(gamma, static_cast<double>(t - 1));
    };
  }
};

}  // namespace

Row step() { return row<Step>(); }
Row exponential() { return row<Exponential>(); }

}  // namespace decent::schedules
