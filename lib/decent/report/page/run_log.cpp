#include "decent/report/page/run_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "decent/core/file.h"

namespace decent {
namespace {

constexpr std::size_t kMostWarnings = 200;
constexpr std::array<std::string_view, 9> kStartWords = {
    "workers", "machine", "device", "exchange", "model", "data", "train", "output", "note"};

// "2026-11-23 06:01:42.333 I text"
struct Line {
  std::string_view time;
  char level = 0;
  std::string_view text;
};

bool begins_line(std::string_view line) {
  return line.size() > 26 && line[4] == '-' && line[7] == '-' && line[10] == ' ' &&
         line[13] == ':' && line[19] == '.' && line[23] == ' ' && line[25] == ' ';
}

// Parses "{0 1} {2 3}"; empty if the text is shortened or something else.
Phase phase_in(std::string_view text) {
  Phase phase;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at++ != '{') return {};
    Edge edge;
    while (at != end && *at != '}') {
      int rank = 0;
      const auto [after, failed] = std::from_chars(at, end, rank);
      if (failed != std::errc()) return {};
      edge.ranks.push_back(rank);
      at = after != end && *after == ' ' ? after + 1 : after;
    }
    if (at == end) return {};
    ++at;
    if (at != end && *at == ' ') ++at;
    phase.push_back(std::move(edge));
  }
  return phase;
}

class Reader {
 public:
  void line(std::string_view text) {
    if (begins_line(text)) {
      add({text.substr(0, 19), text[24], text.substr(26)});
    } else if (in_warning_) {
      log_.warnings.back().text += "\n" + std::string(text);
    }
  }

  RunLog take() {
    auto& all = log_.warnings;
    if (all.size() > kMostWarnings) all.erase(all.begin(), all.end() - kMostWarnings);
    return std::move(log_);
  }

 private:
  void add(const Line& line) {
    in_warning_ = line.level == 'W' || line.level == 'E';
    if (in_warning_) log_.warnings.push_back({std::string(line.time), std::string(line.text)});
    if (line.level == 'I' && line.text.starts_with("decent-train ")) begin(line);
    if (line.level == 'I') add_start_word(line.text);
    const std::size_t colon = line.text.find(": ");
    if (line.level == 'D' && line.text.starts_with("phase ") && colon != std::string_view::npos)
      add_phase(line.text.substr(colon + 2));
  }

  void begin(const Line& line) {
    if (log_.began.empty()) log_.began = line.time;
    log_.start = {{"program", std::string(line.text)}};
    log_.phases.clear();
    whole_ = true;
  }

  void add_start_word(std::string_view text) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || space > 8 || log_.start.empty()) return;
    const std::string_view word = text.substr(0, space);
    if (std::find(kStartWords.begin(), kStartWords.end(), word) == kStartWords.end()) return;
    const std::size_t rest = text.find_first_not_of(' ', space);
    if (rest != std::string_view::npos) log_.start.emplace_back(word, text.substr(rest));
  }

  void add_phase(std::string_view text) {
    Phase phase = phase_in(text);
    whole_ = whole_ && !phase.empty();
    if (whole_) {
      log_.phases.push_back(std::move(phase));
    } else {
      log_.phases.clear();
    }
  }

  RunLog log_;
  bool in_warning_ = false;
  bool whole_ = true;
};

}  // namespace

RunLog read_run_log(const std::filesystem::path& path) {
  Reader reader;
  if (!std::filesystem::exists(path)) return reader.take();
  for_each_line(path, [&](std::string_view text, bool) { reader.line(text); });
  return reader.take();
}

}  // namespace decent
