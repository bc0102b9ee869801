#include "decent/report/progress_bar.h"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "decent/core/text.h"
#include "decent/report/progress.h"

namespace decent {
namespace {

constexpr auto kBetweenDraws = std::chrono::milliseconds(100);
constexpr std::size_t kUsualWidth = 80;

std::size_t terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

std::string bar_text(double share, std::size_t width) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "]";
}

}  // namespace

std::string progress_bar_text(const Progress& p, std::size_t width) {
  constexpr std::size_t kWidestBar = 30, kNarrowestBar = 5;
  const auto total = static_cast<double>(std::max<std::int64_t>(1, p.total_steps));
  const double share = std::clamp(static_cast<double>(p.step) / total, 0.0, 1.0);
  // The most important first.
  std::vector<std::string> figures = {
      fmt::format("{}/{}", p.step, p.total_steps),
      "left " + duration_text(p.seconds_left),
  };
  if (p.loss) figures.push_back(fmt::format("loss {:.4f}", printable(*p.loss)));
  if (p.accuracy) figures.push_back(fmt::format("accuracy {:.2f}%", printable(100 * *p.accuracy)));
  figures.push_back(speed_text(p.samples_per_s));
  figures.push_back(fmt::format("epoch {:.2f}", p.epoch));

  // The last column stays free: some terminals wrap as soon as it is written.
  const std::size_t room = width > 0 ? width - 1 : 0;
  std::string text;
  for (const std::string& figure : figures) {
    if (text.size() + 2 + figure.size() > room) break;
    text += (text.empty() ? "" : "  ") + figure;
  }
  const std::size_t left = room - std::min(room, text.size());
  if (left < kNarrowestBar + 4) return text;
  return bar_text(share, std::min(kWidestBar, left - 4)) + "  " + text;
}

bool ProgressBar::fits_stdout() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(STDOUT_FILENO) == 1 && !dumb;
}

void ProgressBar::update(const Progress& progress) {
  const auto now = Clock::now();
  if (now < next_draw_) return;
  next_draw_ = now + kBetweenDraws;
  const std::string text = progress_bar_text(progress, terminal_width());
  std::fprintf(stdout, "\r%s\x1b[K", text.c_str());
  std::fflush(stdout);
  shown_ = true;
}

void ProgressBar::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stdout);
  std::fflush(stdout);
  shown_ = false;
  next_draw_ = {};
}

}  // namespace decent
