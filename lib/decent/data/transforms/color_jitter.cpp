#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "decent/core/error.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/colors.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

struct Factor {
  double low = 1, high = 1;
};

// A number x means [around - x, around + x], cut at the lower limit; [low, high] is taken as it is.
Factor factor_of(const Options& options, const std::string& key, double around, Factor limits) {
  const auto& values = options.get<std::vector<double>>(key);
  const bool pair = values.size() == 2;
  const std::string who = "transform color_jitter: " + key + ": ";
  if (!pair && values.size() != 1) throw UserError(who + "expected a number or [low, high]");
  if (!pair && values[0] < 0) throw UserError(who + "expected a number that is not negative");
  const Factor factor =
      pair ? Factor{values[0], values[1]} : Factor{around - values[0], around + values[0]};
  const double low = pair ? factor.low : std::max(factor.low, limits.low);
  if (low < limits.low || factor.high > limits.high || low > factor.high) {
    throw UserError(who + "expected values " +
                    (limits.low < 0 ? "from -0.5 to 0.5" : "that are not negative") +
                    ", the lower one first");
  }
  return {low, factor.high};
}

enum Change { brightness, contrast, saturation, hue, kChanges };

class ColorJitter final : public FieldTransform {
 public:
  ColorJitter(std::string field, const std::array<Factor, kChanges>& factors)
      : FieldTransform("color_jitter", std::move(field)), factors_(factors) {}

  bool random() const override { return true; }

 private:
  Field changed(Field field) const override {
    expect_colors(field);
    return field;
  }

  OnMask on_mask() const override { return OnMask::stays; }

  // In random order, as torchvision.
  void change(HostArray& array, SampleRandom& random) const override {
    const Planes image = planes_of(array);
    std::array<int, kChanges> order = {brightness, contrast, saturation, hue};
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i],
                order[static_cast<std::size_t>(random.integer(static_cast<std::int64_t>(i) + 1))]);
    std::array<float, kChanges> drawn;
    for (std::size_t i = 0; i < drawn.size(); ++i)
      drawn[i] = static_cast<float>(random.uniform(factors_[i].low, factors_[i].high));
    for (const int which : order) apply_one(image, which, drawn[static_cast<std::size_t>(which)]);
  }

  void apply_one(const Planes& image, int which, float factor) const {
    if (which == hue) return adjust_hue(image, factor);
    if (factor == 1) return;
    if (which == brightness) adjust_brightness(image, factor);
    if (which == contrast) adjust_contrast(image, factor);
    if (which == saturation) adjust_saturation(image, factor);
  }

  std::array<Factor, kChanges> factors_;
};

std::unique_ptr<SampleTransform> make_color_jitter(const Options& options) {
  const Factor any{0, std::numeric_limits<float>::max()};
  return std::make_unique<ColorJitter>(
      options.get<std::string>("field"),
      std::array<Factor, kChanges>{
          factor_of(options, "brightness", 1, any), factor_of(options, "contrast", 1, any),
          factor_of(options, "saturation", 1, any), factor_of(options, "hue", 0, {-0.5, 0.5})});
}

OptionKey factor_key(const std::string& name, const std::string& meaning) {
  return {.name = name,
          .type = OptionType::numbers,
          .meaning = meaning,
          .fallback = std::vector<double>{0.0}};
}

}  // namespace

Transform color_jitter_transform() {
  return {
      .name = "color_jitter",
      .meaning = "Brightness, contrast, saturation and hue changed, in random order.",
      .keys = {factor_key("brightness",
                          "Random factor for the brightness. n: from 1 - n (at least 0) to 1 + n; "
                          "[low, high]: from low to high."),
               factor_key("contrast",
                          "Random factor, likewise, for each pixel's distance from the mean gray "
                          "of the image."),
               factor_key("saturation",
                          "Random factor, likewise, for each pixel's distance from its own gray."),
               factor_key("hue",
                          "Random shift of the hue, as a share of the colour wheel. n (at most "
                          "0.5): from -n to n; [low, high]: from low to high."),
               field_key()},
      .make = make_color_jitter};
}

}  // namespace decent
