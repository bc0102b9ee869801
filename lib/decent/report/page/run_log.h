#pragma once
// What run.log says about a run besides its figures.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/topology/topology.h"

namespace decent {

struct LogMessage {
  std::string time;
  std::string text;
};

struct RunLog {
  /// The lines of the last start: "program", "workers", "device", .. with their texts.
  std::vector<std::pair<std::string, std::string>> start;
  std::vector<LogMessage> warnings;  // the last warnings and errors
  std::vector<Phase> phases;         // of the last start, those that are not shortened
  std::string began;                 // the time of the first start
};

/// Reads the file; empty if there is none. Throws UserError if it cannot be read.
RunLog read_run_log(const std::filesystem::path& path);

}  // namespace decent
