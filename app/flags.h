#pragma once
// The command line.

#include <optional>
#include <string>
#include <vector>

#include "decent/report/log.h"

namespace decent {

struct Flags {
  std::string config;
  std::vector<std::string> overrides;  // --set, in the order given
  std::optional<std::string> resume;   // "auto" or a folder
  bool eval_only = false;
  std::string checkpoint = "auto";  // that --eval-only and --export read: or a folder, or "none"
  std::optional<std::string> export_file;  // .pt or .safetensors
  bool print_config = false;
  bool dry_run = false;
  bool version = false;
  bool help = false;
  Verbosity verbosity = Verbosity::normal;
};

/// Throws UserError for unknown flags (naming the nearest), missing values and flags that exclude
/// each other.
Flags parse_flags(int argc, char** argv);

std::string help_text();

}  // namespace decent
