#pragma once
// A line at the bottom of a terminal that shows the progress of a run.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace decent {

/// The figures that the line shows.
struct Progress {
  std::int64_t step = 0;
  std::int64_t total_steps = 1;
  double epoch = 0;
  double samples_per_s = 0;
  double seconds_left = 0;
  std::optional<double> loss;      // the last logged loss
  std::optional<double> accuracy;  // of the last evaluation
};

/// The line for a terminal of `width` columns, shorter than that. A narrow terminal loses the less
/// important figures first, then the bar.
std::string progress_bar_text(const Progress& progress, std::size_t width);

/// Draws on stdout. Not thread-safe; hidden until the first draw.
class ProgressBar {
 public:
  /// Whether stdout is a terminal that can redraw a line.
  static bool fits_stdout();

  /// Redraws, at most ten times a second, for the terminal's current width.
  void update(const Progress& progress);
  /// Clears the line, so that something else can be printed; the next update draws again.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_draw_;
  bool shown_ = false;
};

}  // namespace decent
