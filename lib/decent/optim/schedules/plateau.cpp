// torch.optim.lr_scheduler.ReduceLROnPlateau

#include "decent/optim/plateau.h"

#include <algorithm>
#include <iterator>

#include "decent/core/error.h"
#include "decent/optim/schedules/all.h"

namespace decent {
namespace {

struct PlateauRow {
  using Options = PlateauOptions;
  static constexpr std::string_view kName = "plateau";
  static constexpr std::array kOptions = {
      Option<Options>{.name = "metric",
                      .meaning = "The evaluation metric that must improve",
                      .member = &Options::metric,
                      .is_metric = true},
      Option<Options>{.name = "mode",
                      .meaning =
                          "Whether lower or higher values of the metric are better; null: as "
                          "is usual for this metric",
                      .member = &Options::mode,
                      .texts = {"min", "max"}},
      Option<Options>{"factor", "Factor by which each fall multiplies the learning rate",
                      &Options::factor, from_to_below(0, 1)},
      Option<Options>{"patience",
                      "Evaluations in a row without improvement that are tolerated before a fall",
                      &Options::patience, at_least(0)},
      Option<Options>{"threshold",
                      "A value counts as an improvement if it is better than the best so far by "
                      "more than this",
                      &Options::threshold, at_least(0)},
      Option<Options>{
          .name = "threshold_mode",
          .meaning = "Whether threshold is a share of the best value or a difference from it",
          .member = &Options::threshold_mode,
          .texts = {"rel", "abs"}},
      Option<Options>{
          "cooldown",
          "Evaluations after a fall that never count as evaluations without improvement",
          &Options::cooldown, at_least(0)},
      Option<Options>{"min_lr", "Lowest learning rate", &Options::min_lr, at_least(0)},
      Option<Options>{"eps", "A fall by no more than this number is not made", &Options::eps,
                      at_least(0)}};
  static constexpr bool kFollowsEvaluations = true;

  static void resolve(Options& options, const schedules::Rest& of) {
    if (of.plateau == nullptr)
      throw UserError("schedule plateau: there is nothing that looks at evaluations");
    options = of.plateau->options();
  }

  static Schedule make(const Options&, const schedules::Rest& of) {
    return [plateau = of.plateau](std::int64_t step) { return plateau->lr(step); };
  }
};

}  // namespace

PlateauOptions plateau_options(const Options& given) {
  PlateauOptions options;
  assign_options(options, PlateauRow::kOptions, given, schedules::kAbout);
  return options;
}

Plateau::Plateau(const PlateauOptions& options)
    : options_(options),
      better_{.higher_is_better = options.mode == "max",
              .threshold = options.threshold,
              .relative = options.threshold_mode == "rel"},
      state_({.start = options.lr}) {
  check_options(options, PlateauRow::kOptions, schedules::kAbout);
}

double Plateau::lr(std::int64_t step) const {
  const auto after = std::upper_bound(
      state_.falls.begin(), state_.falls.end(), step,
      [](std::int64_t wanted, const Fall& fall) { return wanted < fall.first_step; });
  return after == state_.falls.begin() ? state_.start : std::prev(after)->lr;
}

bool Plateau::saw(std::int64_t step, double value) {
  state_.best.saw(value, better_);
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.best.without_improvement = 0;
  }
  return state_.best.without_improvement > options_.patience && fall(step);
}

bool Plateau::fall(std::int64_t step) {
  state_.cooldown = options_.cooldown;
  state_.best.without_improvement = 0;
  const double lower = std::max(state_.lr() * options_.factor, options_.min_lr);
  if (!(state_.lr() - lower > options_.eps)) return false;
  state_.falls.push_back({.first_step = step + 1, .lr = lower});
  return true;
}

void Plateau::restore(const State& state) {
  state_ = state;
  if (state.start == options_.lr) return;
  for (Fall& fall : state_.falls) fall.lr *= options_.lr / state.start;
  state_.start = options_.lr;
}

schedules::Row schedules::plateau() { return row<PlateauRow>(); }

}  // namespace decent
