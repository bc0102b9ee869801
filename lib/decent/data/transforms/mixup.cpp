// mixup (Zhang and others, "mixup: Beyond Empirical Risk Minimization", arXiv 1710.09412), as
// torchvision.transforms.v2.MixUp has it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

// In (0, 1], so that it has a logarithm.
double positive_uniform(SampleRandom& random) { return 1 - random.uniform(); }

// By Box and Muller, one of the two.
double normal(SampleRandom& random) {
  const double radius = std::sqrt(-2 * std::log(positive_uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// Draws the logarithm of a gamma-distributed number, because with a small shape the numbers are too
// small for a double (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000;
// a shape below 1 by their last section).
double log_gamma_number(double shape, SampleRandom& random) {
  const double d = shape + 1 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(random);
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double drawn = std::log(positive_uniform(random));
    if (drawn >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    return std::log(d * v) + std::log(positive_uniform(random)) / shape;
  }
}

// Of Beta(alpha, alpha).
double draw_weight(double alpha, SampleRandom& random) {
  const double one = log_gamma_number(alpha, random);
  const double other = log_gamma_number(alpha, random);
  return 1 / (1 + std::exp(other - one));
}

struct MixupKeys {
  double alpha = 1;
  std::optional<std::int64_t> classes;  // none: as many as the data names
  std::string field;
  std::string target;
};

class Mixup final : public BatchTransform {
 public:
  explicit Mixup(MixupKeys keys) : keys_(std::move(keys)) {
    if (!(keys_.alpha > 0) || !std::isfinite(keys_.alpha))
      wrong("alpha: expected a number above 0");
    if (keys_.field == keys_.target) wrong("field and target are both '" + keys_.field + "'");
  }

  std::vector<Field> fields(std::vector<Field> before, std::int64_t classes) override {
    input_ = find_field(before, keys_.field, "mixup");
    target_ = find_field(before, keys_.target, "mixup");
    check_input(before[input_]);
    before[target_] = mixed_target(std::move(before[target_]), keys_.classes.value_or(classes));
    return before;
  }

  bool changes(std::size_t field) const override { return field == input_ || field == target_; }

  void apply(std::size_t field, std::int64_t samples, std::span<const std::byte> before,
             std::span<std::byte> after, SampleRandom random) const override {
    const double weight = draw_weight(keys_.alpha, random);
    const std::span<float> mixed{reinterpret_cast<float*>(after.data()),
                                 after.size() / sizeof(float)};
    if (field == target_ && classes_ > 0) {
      std::vector<float> probabilities(mixed.size());
      write_certain({reinterpret_cast<const std::int64_t*>(before.data()),
                     before.size() / sizeof(std::int64_t)},
                    probabilities);
      mix(probabilities, mixed, samples, weight);
    } else {
      mix({reinterpret_cast<const float*>(before.data()), before.size() / sizeof(float)}, mixed,
          samples, weight);
    }
  }

 private:
  void check_input(const Field& field) const {
    if (field.dtype == DType::float32) return;
    wrong("field '" + field.name + "' is " + std::string(name_of(field.dtype)) + "; " +
          float32_expected(field.dtype));
  }

  // A target of one class for each sample becomes the probabilities of all classes; numbers stay
  // numbers.
  Field mixed_target(Field target, std::int64_t classes) {
    classes_ = 0;
    if (target.dtype == DType::float32) return target;
    if (target.dtype != DType::int64 || !target.shape.empty()) {
      wrong("field '" + target.name + "' is " + std::string(name_of(target.dtype)) +
            shape_text(target.shape) +
            " a sample; expected one class (int64 []), or float32 of any shape");
    }
    if (classes < 1) wrong("num_classes: the data names no classes; say how many there are");
    classes_ = classes;
    return {.name = std::move(target.name), .dtype = DType::float32, .shape = {classes}};
  }

  // Writes probability 1 for each sample's class.
  void write_certain(std::span<const std::int64_t> classes, std::vector<float>& out) const {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if (classes[i] < 0 || classes[i] >= classes_) {
        wrong("field '" + keys_.target + "' has class " + std::to_string(classes[i]) +
              "; expected 0 to " + std::to_string(classes_ - 1) + " (num_classes)");
      }
      out[i * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(classes[i])] = 1;
    }
  }

  // Mixes each sample with the one before it, and the first with the last.
  static void mix(std::span<const float> in, std::span<float> out, std::int64_t samples,
                  double weight) {
    const auto own = static_cast<float>(weight);
    const auto other = static_cast<float>(1 - weight);
    const std::size_t each = in.size() / static_cast<std::size_t>(samples);
    const float* partner = in.data() + (in.size() - each);
    for (std::size_t begin = 0; begin < in.size(); begin += each) {
      const float* sample = in.data() + begin;
      for (std::size_t i = 0; i < each; ++i) out[begin + i] = partner[i] * other + sample[i] * own;
      partner = sample;
    }
  }

  [[noreturn]] static void wrong(const std::string& problem) {
    throw UserError("transform mixup: " + problem);
  }

  MixupKeys keys_;
  std::size_t input_ = 0;
  std::size_t target_ = 0;
  std::int64_t classes_ = 0;  // 0: the target holds numbers
};

}  // namespace

Transform mixup_transform() {
  return {
      .name = "mixup",
      .meaning =
          "Training only: each sample of a batch is mixed with the one before it, x and "
          "y, as weight * own + (1 - weight) * other, the weight drawn from "
          "Beta(alpha, alpha) for each batch. Classes become probabilities.",
      .keys = {{.name = "alpha",
                .type = OptionType::number,
                .meaning =
                    "Above zero. The smaller it is, the nearer the mixing weights are to 0 and 1.",
                .fallback = 1.0,
                .range = at_least(0)},
               {.name = "num_classes",
                .type = OptionType::integer,
                .meaning = "Number of classes; null: as many as the data names.",
                .fallback = kNull,
                .range = at_least(1)},
               field_key(),
               {.name = "target",
                .type = OptionType::text,
                .meaning =
                    "The target, which is mixed with the same weight: a class, or float32 numbers.",
                .fallback = std::string("y")}},
      .make_for_batches = [](const Options& options) -> std::unique_ptr<BatchTransform> {
        return std::make_unique<Mixup>(
            MixupKeys{.alpha = options.get<double>("alpha"),
                      .classes = options.get_if<std::int64_t>("num_classes"),
                      .field = options.get<std::string>("field"),
                      .target = options.get<std::string>("target")});
      }};
}

}  // namespace decent
