#pragma once
// The table of schedules; internal to this room. A schedule is a struct S with
//
//   Options               plain data with defaults
//   kName
//   kOptions              an Option (core/option.h) for each, of which no other file has to know
//   resolve(options, of)  optional; fills in what follows from the training: of.steps, of.plateau
//   make(options, of)     the schedule; options are in their ranges
//   kFollowsEvaluations   optional

#include <array>
#include <string>
#include <string_view>
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

template <class S>
concept FollowsEvaluations = requires { S::kFollowsEvaluations; };

template <class S>
typename S::Options resolved(const ScheduleOptions& of) {
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
Row row() {
  return {.name = S::kName,
          .keys = keys_of(S::kOptions),
          .arguments =
              [](const ScheduleOptions& of) { return values_of(resolved<S>(of), S::kOptions); },
          .make = [](const ScheduleOptions& of) { return S::make(resolved<S>(of), of); },
          .follows_evaluations = FollowsEvaluations<S>};
}

Row cosine_warmup();  // cosine_warmup.cpp
Row linear();         // linear.cpp
Row step();           // decays.cpp
Row exponential();    // decays.cpp
Row one_cycle();      // one_cycle.cpp
Row plateau();        // plateau.cpp

}  // namespace decent::schedules
