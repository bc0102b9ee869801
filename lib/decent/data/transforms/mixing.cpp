#include "decent/data/transforms/mixing.h"

#include <cmath>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

// Draws the logarithm of a gamma-distributed number, because with a small shape the numbers are too
// small for a double (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000;
// a shape below 1 by their last section).
double log_gamma_number(double shape, SampleRandom& random) {
  const double d = shape + 1 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double drawn = std::log(random.positive_uniform());
    if (drawn >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    return std::log(d * v) + std::log(random.positive_uniform()) / shape;
  }
}

template <class T, class Byte>
std::span<T> values_in(std::span<Byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

Mixing::Mixing(std::string name, const Options& options)
    : name_(std::move(name)),
      alpha_(options.get<double>("alpha")),
      num_classes_(options.get_if<std::int64_t>("num_classes")),
      field_(options.get<std::string>("field")),
      target_field_(options.get<std::string>("target")) {
  if (!(alpha_ > 0) || !std::isfinite(alpha_)) wrong("alpha: expected a number above 0");
  if (field_ == target_field_) wrong("field and target are both '" + field_ + "'");
}

std::vector<Field> Mixing::fields(std::vector<Field> before, std::int64_t classes) {
  input_ = find_field(before, field_, name_);
  target_ = find_field(before, target_field_, name_);
  const Field& input = before[input_];
  if (input.dtype != DType::float32) {
    wrong("field '" + input.name + "' is " + std::string(name_of(input.dtype)) + "; " +
          float32_expected(input.dtype));
  }
  check_input(input);
  before[target_] = mixed_target(std::move(before[target_]), num_classes_.value_or(classes));
  return before;
}

void Mixing::apply(std::size_t field, std::int64_t samples, std::span<const std::byte> before,
                   std::span<std::byte> after, SampleRandom random) const {
  const std::span<float> mixed = values_in<float>(after);
  if (field == input_) return mix_input(values_in<const float>(before), mixed, samples, random);
  if (classes_ == 0)
    return mix_by_weight(values_in<const float>(before), mixed, samples, kept_share(random));
  std::vector<float> probabilities(mixed.size());
  write_certain(values_in<const std::int64_t>(before), probabilities);
  mix_by_weight(probabilities, mixed, samples, kept_share(random));
}

double Mixing::draw_weight(SampleRandom& random) const {
  const double one = log_gamma_number(alpha_, random);
  const double other = log_gamma_number(alpha_, random);
  return 1 / (1 + std::exp(other - one));
}

void Mixing::wrong(const std::string& problem) const {
  throw UserError("transform " + name_ + ": " + problem);
}

// A target of one class for each sample becomes the probabilities of all classes; numbers stay
// numbers.
Field Mixing::mixed_target(Field target, std::int64_t classes) {
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
void Mixing::write_certain(std::span<const std::int64_t> classes, std::vector<float>& out) const {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] < 0 || classes[i] >= classes_) {
      wrong("field '" + target_field_ + "' has class " + std::to_string(classes[i]) +
            "; expected 0 to " + std::to_string(classes_ - 1) + " (num_classes)");
    }
    out[i * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(classes[i])] = 1;
  }
}

void mix_by_weight(std::span<const float> in, std::span<float> out, std::int64_t samples,
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

std::vector<OptionKey> mixing_keys(std::string alpha_meaning) {
  return {
      {.name = "alpha",
       .type = OptionType::number,
       .meaning = std::move(alpha_meaning),
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
       .meaning = "The target, which is mixed with the same weight: a class, or float32 numbers.",
       .fallback = std::string("y")}};
}

}  // namespace decent
