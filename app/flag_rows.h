#pragma once
// The flags, a row each. Help, the checks of what goes together, the arguments of workers and the
// comparison of commands follow from the rows.

#include <functional>
#include <string>
#include <vector>

#include "flags.h"

namespace decent {

enum class FlagUse { any, recipe, report };  // with a recipe, with --report, or both

enum class FlagReach {
  process,  // the process that was started
  workers,  // also the workers that it starts (--workers)
  command,  // these, and it says what all workers do together: they must have the same
};

struct FlagRow {
  std::string name;
  std::string help;
  std::string value;  // how the help writes its value: "FILE", "auto|DIR"; empty: a switch
  FlagUse use;
  FlagReach reach;
  std::function<void(const std::string& value, Flags& flags)> read;
  /// The values that `flags` hold of it, for workers: none if it is not given, one of any text for
  /// a switch that is.
  std::function<std::vector<std::string>(const Flags& flags)> values = [](const Flags&) {
    return std::vector<std::string>();
  };
  bool repeats = false;
};

/// In the order of --help.
const std::vector<FlagRow>& flag_rows();

}  // namespace decent
