#pragma once
// The learning rate of a run as text.

#include <string>

namespace decent {

/// The highest learning rate of a schedule.
struct PeakLr {
  double value = 0;
  double given = 0;  // optimizer.lr, before it was scaled to the number of workers

  bool scaled() const { return value != given; }
};

/// "0.001", or "0.002 (0.001 x sqrt(4) workers)".
std::string lr_text(const PeakLr& lr, int workers);

}  // namespace decent
