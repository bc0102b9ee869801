#pragma once
// The log of a run: lines on stdout and in run.log from rank 0, warnings on stderr.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spdlog {
class logger;
}

namespace decent {

enum class Verbosity { quiet, normal, verbose };

/// Adds a line of level E to the run.log `path`, even if it is open elsewhere. Any thread. Throws
/// WriteError.
void append_error(const std::filesystem::path& path, const std::string& line);

class Log {
 public:
  /// Only rank 0 prints. quiet: only warnings; verbose: details, too. run.log always gets all
  /// lines.
  Log(int rank, Verbosity verbosity);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Writes all lines so far, and all later ones, to this file, with their times. Throws
  /// WriteError, and so does every later line that cannot be written there.
  void open_file(const std::filesystem::path& path);

  bool quiet() const;
  void detail(const std::string& line);
  void info(const std::string& line);
  void warn(const std::string& line);
  /// Sets a function that is called before a line is printed, such as ProgressBar::clear; null:
  /// none.
  void before_line(std::function<void()> clear) { before_line_ = std::move(clear); }
  /// Writes a line only to the file, for progress that the user turned off on the screen.
  void file_only(const std::string& line);

 private:
  void write(int level, const std::string& line);  // level: spdlog's
  void write_to_file(int level, const std::string& line);

  std::unique_ptr<spdlog::logger> screen_;
  std::unique_ptr<spdlog::logger> file_;
  std::vector<std::pair<int, std::string>> early_;  // lines before there was a file
  std::function<void()> before_line_;
};

}  // namespace decent
