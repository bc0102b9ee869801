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
  int workers = 0;                         // that this process starts; 0: it is a worker
  int max_restarts = 0;                    // of those workers
  bool print_config = false;
  bool dry_run = false;
  bool version = false;
  bool help = false;
  Verbosity verbosity = Verbosity::normal;
};

/// Throws UserError for unknown flags (naming the nearest), missing values and flags that exclude
/// each other.
Flags parse_flags(int argc, char** argv);

/// The command line of a worker that is started with these flags, without the program's name.
std::vector<std::string> arguments_of(const Flags& flags);

std::string help_text();

}  // namespace decent
