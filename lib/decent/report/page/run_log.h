#pragma once
// The warnings in run.log.

#include <filesystem>
#include <string>
#include <vector>

namespace decent {

struct LogMessage {
  std::string time;
  std::string text;
};

/// The last warnings and errors; empty if there is no such file. Throws UserError if it cannot be
/// read.
std::vector<LogMessage> warnings_in(const std::filesystem::path& path);

}  // namespace decent
