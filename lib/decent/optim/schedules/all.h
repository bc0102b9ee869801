#pragma once
// The table of schedules; internal to this room.

#include <cstdint>
#include <string_view>

#include "decent/core/options.h"
#include "decent/optim/schedule.h"

namespace decent::schedules {

struct Row {
  std::string_view name;
  /// The options other than lr that it takes, with the values that it would use. A required option
  /// that is missing has the value null.
  Options (*arguments)(const ScheduleOptions& options);
  /// Throws UserError for options that are missing or out of range.
  Schedule (*make)(const ScheduleOptions& options);
  bool follows_evaluations = false;
};

/// Throws UserError if `valid` is false: "schedule: <name> is <value>: it must be <range>".
void check(bool valid, const char* name, std::int64_t value, const char* range);
void check(bool valid, const char* name, double value, const char* range);

Row constant();       // schedule.cpp
Row cosine_warmup();  // cosine_warmup.cpp
Row linear();         // linear.cpp
Row step();           // decays.cpp
Row exponential();    // decays.cpp
Row one_cycle();      // one_cycle.cpp
Row plateau();        // plateau.cpp

}  // namespace decent::schedules
