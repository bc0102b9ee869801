#pragma once
// What a run tells its user: lines on stdout and in run.log from rank 0, warnings on stderr.

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

class Log {
 public:
  /// Only rank 0 speaks. quiet: warnings only; verbose: details too. run.log always gets
  /// everything.
  Log(int rank, Verbosity verbosity);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// From now on all lines also go to this file, with the time, and those before do now. Throws
  /// WriteError, as every later line does that cannot be written there.
  void open_file(const std::filesystem::path& path);

  bool quiet() const;
  void detail(const std::string& line);
  void info(const std::string& line);
  void warn(const std::string& line);
  /// Called before a line goes to the screen, by whoever draws there; null: nobody.
  void before_line(std::function<void()> clear) { before_line_ = std::move(clear); }
  /// Only to the file, for progress that the user turned off on the screen.
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
