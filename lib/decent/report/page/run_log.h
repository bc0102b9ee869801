#pragma once
// What run.log tells of a run besides its figures.

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
  /// Of the last start: "program", "workers", "device", .. and what is said of each.
  std::vector<std::pair<std::string, std::string>> start;
  std::vector<LogMessage> warnings;  // and errors; the last ones
  std::vector<Phase> phases;         // of the last start, as far as they stand there whole
  std::string began;                 // when the first start was
};

/// Nothing in it where there is no such file. Throws UserError where it cannot be read.
RunLog read_run_log(const std::filesystem::path& path);

}  // namespace decent
