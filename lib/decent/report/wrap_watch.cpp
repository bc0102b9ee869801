#include "decent/report/wrap_watch.h"

#include <spdlog/fmt/fmt.h>

namespace decent {

std::optional<std::string> WrapWatch::saw(std::int64_t step, double share) {
  if (warned_ || !(share > kMaxShare)) return std::nullopt;
  warned_ = true;
  return fmt::format(
      "step {}: copies of {:.3g}% of the weights are further apart than the codes of the exchange "
      "can tell (wrap_share): they are mixed with wrong differences.\n"
      "A larger parallel.modulo_range, comm_dtype: modulo4, fewer slices or a smaller optimizer.lr "
      "may help.",
      step, 100 * share);
}

}  // namespace decent
