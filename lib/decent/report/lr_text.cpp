#include "decent/report/lr_text.h"

#include <spdlog/fmt/fmt.h>

namespace decent {

std::string lr_text(const PeakLr& lr, int workers) {
  if (!lr.scaled()) return fmt::format("{:g}", lr.value);
  return fmt::format("{:g} ({:g} x sqrt({}) workers)", lr.value, lr.given, workers);
}

}  // namespace decent
