#pragma once
// The table of schedules; internal to this room. A schedule is a struct S with
//
//   Options               plain data with defaults
//   kName
//   kOptions              an Option (core/option.h) for each, of which no other file has to know
//   resolve(options, of)  optional; fills in what follows from the training: of.steps, of.plateau
//   make(options, of)     the schedule, whose step 1 is the first one after the warm-up; options
//   are
//                         in their ranges
//   kFollowsEvaluations   optional: its steps are those of the training, with the warm-up's
//
// A linear warm-up comes before every schedule; its options are those of every row.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decent/core/error.h"
#include "decent/core/option_table.h"
#include "decent/optim/plateau.h"
#include "decent/optim/schedule.h"

namespace decent::schedules {

struct Row {
  std::string_view name;
  std::vector<OptionKey> keys = {};
  Options (*arguments)(const ScheduleOptions& of);
  Schedule (*make)(const ScheduleOptions& of);
  bool follows_evaluations = false;
};

inline constexpr std::string_view kAbout = "schedule: ";  // begins messages

/// Raises the learning rate in a line from warmup_decay * lr to lr.
struct WarmUp {
  std::int64_t warmup_steps = 0;
  std::optional<double> warmup_epochs = {};  // resolved: none, warmup_steps has them
  double warmup_decay = 0.01;
};

/// What follows the warm-up: `steps` are those that it leaves.
struct Rest : ScheduleOptions {
  std::int64_t warmup_steps = 0;
};

/// The options of WarmUp.
std::vector<OptionKey> warm_up_keys();
/// The warm-up in these options. Throws UserError for options that are out of range.
WarmUp warm_up_of(const ScheduleOptions& of);
Options values_of(const WarmUp& warm_up);
Rest rest_after(const WarmUp& warm_up, const ScheduleOptions& of);
/// The warm-up to `lr`, then `rest`. With `in_place`, the warm-up is a factor of the first steps of
/// `rest`, which does not wait for it.
Schedule warmed_up(const WarmUp& warm_up, double lr, Schedule rest, bool in_place);

template <class S>
concept FollowsEvaluations = requires { S::kFollowsEvaluations; };

template <class S>
typename S::Options resolved(const Rest& of) {
  auto options = options_from(of.options, S::kOptions, kAbout);
  if constexpr (requires { S::resolve(options, of); }) S::resolve(options, of);
  check_options(options, S::kOptions, kAbout);
  for (const auto& option : S::kOptions) {
    if (!option.example.empty() && value_of(options, option) == kNull)
      throw UserError(std::string(kAbout) + std::string(S::kName) + " needs " +
                      std::string(option.name));
  }
  return options;
}

template <class S>
Options arguments(const ScheduleOptions& of) {
  const WarmUp warm_up = warm_up_of(of);
  Options all = values_of(warm_up);
  const Options own = values_of(resolved<S>(rest_after(warm_up, of)), S::kOptions);
  for (const auto& [name, value] : own.all()) all.set(name, value);
  return all;
}

template <class S>
Schedule make(const ScheduleOptions& of) {
  const WarmUp warm_up = warm_up_of(of);
  const Rest rest = rest_after(warm_up, of);
  return warmed_up(warm_up, of.lr, S::make(resolved<S>(rest), rest), FollowsEvaluations<S>);
}

template <class S>
Row row() {
  std::vector<OptionKey> keys = warm_up_keys();
  for (OptionKey& key : keys_of(S::kOptions)) keys.push_back(std::move(key));
  return {.name = S::kName,
          .keys = std::move(keys),
          .arguments = arguments<S>,
          .make = make<S>,
          .follows_evaluations = FollowsEvaluations<S>};
}

Row constant();             // schedule.cpp
Row cosine_warmup();        // cosine_warmup.cpp
Row linear();               // linear.cpp
Row step();                 // decays.cpp
Row exponential();          // decays.cpp
Row inverse_sqrt();         // inverse_sqrt.cpp
Row warmup_stable_decay();  // warmup_stable_decay.cpp
Row one_cycle();            // one_cycle.cpp
Row plateau();              // plateau.cpp
Row chain();                // chain.cpp

}  // namespace decent::schedules
