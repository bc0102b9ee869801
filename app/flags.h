#pragma once
// The command line.

#include <optional>
#include <string>
#include <vector>

#include "decent/train/log.h"

namespace decent {

struct Flags {
  std::string config;
  std::vector<std::string> overrides;  // --set, in the order given
  bool print_config = false;
  bool dry_run = false;
  bool version = false;
  bool help = false;
  Verbosity verbosity = Verbosity::normal;
};

/// Throws UserError for unknown flags (naming the nearest), missing values and flags that are not
/// supported yet.
Flags parse_flags(int argc, char** argv);

std::string help_text();

}  // namespace decent
