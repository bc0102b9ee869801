#pragma once
// The command line.

#include <optional>
#include <string>
#include <vector>

#include "decent/runfolder/log.h"

namespace decent {

struct Flags {
  std::string config;
  std::vector<std::string> overrides;  // --set, in the order given
  std::optional<std::string> resume;   // "auto" or a folder
  bool eval_only = false;
  std::string checkpoint = "auto";          // to read without training; see names_folder
  std::optional<std::string> export_file;   // .pt or .safetensors
  std::optional<std::string> predict_file;  // one of prediction_formats()
  int workers = 0;                          // to be started by this process; 0: it is a worker
  int max_restarts = 0;                     // of those workers
  int min_workers = 0;                      // with which they are started again; 0: with all
  std::vector<std::string> report;          // folders of runs to show
  std::string out;                          // the file of --report; empty: the page is served
  int serve = 0;                            // the port of --serve; 0: a free one
  bool print_config = false;
  bool dry_run = false;
  bool version = false;
  bool help = false;
  Verbosity verbosity = Verbosity::normal;

  /// Whether a checkpoint is only read: --eval-only, --predict, --export.
  bool reads_checkpoint() const { return eval_only || predict_file || export_file; }
};

/// Throws UserError for unknown flags (naming the nearest one), missing values, and flags that
/// exclude each other.
Flags parse_flags(int argc, char** argv);

/// Whether --checkpoint names a folder, so is not auto, best or none.
bool names_folder(const std::string& checkpoint);

/// The command line of a worker that is started with these flags, without the program's name.
std::vector<std::string> arguments_of(const Flags& flags);

/// What the workers with these flags do together, in words that are the same on all machines, where
/// folders may have other names: "--resume DIR".
std::string command_of(const Flags& flags);

std::string help_text();

}  // namespace decent
