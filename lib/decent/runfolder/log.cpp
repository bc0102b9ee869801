#include "decent/runfolder/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "decent/core/error.h"
#include "decent/core/file.h"

namespace decent {
namespace {

// Prints warnings and errors to stderr, all other lines to stdout.
class ScreenSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    if (message.level < spdlog::level::warn) {
      out_.log(message);
    } else {
      err_.log(message);
    }
  }
  void flush() override {
    out_.flush();
    err_.flush();
  }
  void set_pattern(const std::string& pattern) override {
    out_.set_pattern(pattern);
    err_.set_pattern("warning: " + pattern);
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    out_.set_formatter(formatter->clone());
    err_.set_formatter(std::move(formatter));
  }

 private:
  spdlog::sinks::stdout_sink_st out_;
  spdlog::sinks::stderr_sink_st err_;
};

spdlog::level::level_enum level_of(int rank, Verbosity verbosity) {
  if (rank != 0) return spdlog::level::off;
  switch (verbosity) {
    case Verbosity::quiet:
      return spdlog::level::warn;
    case Verbosity::normal:
      return spdlog::level::info;
    case Verbosity::verbose:
      return spdlog::level::debug;
  }
  __builtin_unreachable();
}

// A logger that appends to the file. Throws WriteError, as does every line that cannot be written.
std::unique_ptr<spdlog::logger> file_logger(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::unique_ptr<spdlog::logger> logger;
  check_is_no_pipe(path);
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(name);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %L %v");
    logger = std::make_unique<spdlog::logger>("file", sink);
  } catch (const std::exception& error) {
    throw WriteError("cannot write '" + name + "': " + error.what());
  }
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  logger->set_error_handler([name](const std::string& reason) {
    throw WriteError("cannot write '" + name + "': " + reason);
  });
  return logger;
}

}  // namespace

void append_error(const std::filesystem::path& path, const std::string& line) {
  file_logger(path)->error(line);
}

Log::Log(int rank, Verbosity verbosity) {
  auto sink = std::make_shared<ScreenSink>();
  sink->set_pattern("%v");
  screen_ = std::make_unique<spdlog::logger>("screen", sink);
  screen_->set_level(level_of(rank, verbosity));
  screen_->flush_on(spdlog::level::debug);
}

Log::~Log() = default;

void Log::open_file(const std::filesystem::path& path) {
  file_ = file_logger(path);
  for (const auto& [level, line] : std::exchange(early_, {})) write_to_file(level, line);
}

bool Log::quiet() const { return screen_->level() > spdlog::level::info; }

void Log::detail(const std::string& line) { write(spdlog::level::debug, line); }

void Log::info(const std::string& line) { write(spdlog::level::info, line); }

void Log::warn(const std::string& line) { write(spdlog::level::warn, line); }

void Log::file_only(const std::string& line) { write_to_file(spdlog::level::info, line); }

void Log::write(int level, const std::string& line) {
  const auto spdlog_level = static_cast<spdlog::level::level_enum>(level);
  if (before_line_ && screen_->should_log(spdlog_level)) before_line_();
  screen_->log(spdlog_level, spdlog::string_view_t(line));
  write_to_file(level, line);
}

void Log::write_to_file(int level, const std::string& line) {
  if (file_) {
    file_->log(static_cast<spdlog::level::level_enum>(level), spdlog::string_view_t(line));
  } else {
    early_.emplace_back(level, line);
  }
}

}  // namespace decent
