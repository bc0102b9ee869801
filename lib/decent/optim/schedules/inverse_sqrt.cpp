// The schedule of "Attention Is All You Need" (arXiv 1706.03762, 5.3), scaled to its peak:
// get_inverse_sqrt_schedule of transformers, inverse_sqrt of fairseq

#include <cmath>

#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

constexpr std::int64_t kTimescale = 10000;

struct InverseSqrtOptions {
  std::optional<std::int64_t> timescale;
};

struct InverseSqrt {
  using Options = InverseSqrtOptions;
  static constexpr std::string_view kName = "inverse_sqrt";
  static constexpr std::array kOptions = {
      Option<Options>{"timescale",
                      "Updates after which the learning rate, if it had fallen from the start, "
                      "would be lr; null: those of the warm-up, or 10000 without one",
                      &Options::timescale, at_least(1)}};

  static void resolve(Options& options, const Rest& of) {
    if (!options.timescale) options.timescale = of.warmup_steps > 0 ? of.warmup_steps : kTimescale;
  }

  static Schedule make(const Options& options, const Rest& of) {
    return [lr = of.lr, scale = static_cast<double>(*options.timescale)](std::int64_t t) {
      return lr * std::sqrt(scale / (scale + static_cast<double>(t - 1)));
    };
  }
};

}  // namespace

Row inverse_sqrt() { return row<InverseSqrt>(); }

}  // namespace decent::schedules
