#include "decent/data/transforms/normalize.h"

#include <cmath>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/transforms/built_in.h"
#include "decent/data/transforms/field_transform.h"

namespace decent {
namespace {

class Normalize final : public FieldTransform {
 public:
  explicit Normalize(Normalization its)
      : FieldTransform("normalize", its.field),
        mean_(its.mean.begin(), its.mean.end()),
        std_(its.std.begin(), its.std.end()) {
    for (const double mean : its.mean) {
      if (!std::isfinite(mean)) wrong("mean: expected numbers that are finite");
    }
    for (std::size_t i = 0; i < its.std.size(); ++i) {
      // Checked as float32, because that is the divisor.
      if (!(std_[i] > 0) || !std::isfinite(std_[i])) wrong("std: expected numbers above zero");
    }
    if (mean_.empty() || std_.empty()) wrong("mean and std: expected at least one number each");
    if (mean_.size() != std_.size() && mean_.size() != 1 && std_.size() != 1) {
      wrong("mean has " + counted(static_cast<std::int64_t>(mean_.size()), "value") + ", std has " +
            std::to_string(std_.size()));
    }
  }

 private:
  Field changed(Field field) const override {
    if (field.dtype != DType::float32) {
      wrong("field '" + field.name + "' is " + std::string(name_of(field.dtype)) + "; " +
            float32_expected(field.dtype));
    }
    const std::int64_t places = field.shape.empty() ? 1 : field.shape[0];
    for (const auto* values : {&mean_, &std_}) {
      const auto count = static_cast<std::int64_t>(values->size());
      if (count == 1 || count == places) continue;
      wrong(std::string(values == &mean_ ? "mean" : "std") + " has " + counted(count, "value") +
            ", field '" + field.name + "' is of " + shape_text(field.shape) + ": expected 1" +
            (places > 1 ? " or " + std::to_string(places) : ""));
    }
    return field;
  }

  OnMask on_mask() const override { return OnMask::stays; }

  void change(HostArray& array, SampleRandom&) const override {
    const auto places = array.shape.empty() ? 1 : static_cast<std::size_t>(array.shape[0]);
    const std::span<float> values = array.as<float>();
    const std::size_t each = places == 0 ? 0 : values.size() / places;
    for (std::size_t place = 0; place < places; ++place) {
      const float mean = mean_[mean_.size() == 1 ? 0 : place];
      const float std = std_[std_.size() == 1 ? 0 : place];
      for (float& value : values.subspan(place * each, each)) value = (value - mean) / std;
    }
  }

  std::vector<float> mean_;
  std::vector<float> std_;
};

class ToFloat final : public FieldTransform {
 public:
  explicit ToFloat(std::string field) : FieldTransform("to_float", std::move(field)) {}

 private:
  Field changed(Field field) const override {
    if (field.dtype != DType::uint8) {
      wrong("field '" + field.name + "' is " + std::string(name_of(field.dtype)) +
            "; expected uint8");
    }
    field.dtype = DType::float32;
    return field;
  }

  OnMask on_mask() const override { return OnMask::stays; }

  void change(HostArray& array, SampleRandom&) const override {
    constexpr float kWhite = 255;
    thread_local std::vector<std::byte> spare;
    spare.resize(array.bytes.size() * sizeof(float));
    const auto in = array.as<const std::uint8_t>();
    auto* out = reinterpret_cast<float*>(spare.data());
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<float>(in[i]) / kWhite;
    std::swap(array.bytes, spare);
    array.dtype = DType::float32;
  }
};

}  // namespace

Normalization normalization_of(const Options& options) {
  if (options.is_null("mean") || options.is_null("std"))
    throw UserError("transform normalize: expected auto, or mean and std");
  return {.field = options.get<std::string>("field"),
          .mean = options.get<std::vector<double>>("mean"),
          .std = options.get<std::vector<double>>("std")};
}

std::unique_ptr<SampleTransform> make_normalize(Normalization normalization) {
  return std::make_unique<Normalize>(std::move(normalization));
}

Transform normalize_transform() {
  return {.name = "normalize",
          .meaning = "(x - mean) / std.",
          .keys = {{.name = "statistics",
                    .type = OptionType::text,
                    .meaning = "auto: mean and std are measured over the training data.",
                    .fallback = kNull,
                    .names = {"auto"}},
                   {.name = "mean",
                    .type = OptionType::numbers,
                    .meaning = "One number, or one for each channel (of a table: for each column).",
                    .fallback = kNull},
                   {.name = "std",
                    .type = OptionType::numbers,
                    .meaning = "The same, each above zero.",
                    .fallback = kNull},
                   field_key()},
          .make = [](const Options& options) { return make_normalize(normalization_of(options)); }};
}

Transform to_float_transform() {
  return {.name = "to_float",
          .meaning = "Bytes (uint8) to float32 from 0 to 1: divided by 255.",
          .keys = {field_key()},
          .make = [](const Options& options) -> std::unique_ptr<SampleTransform> {
            return std::make_unique<ToFloat>(options.get<std::string>("field"));
          }};
}

}  // namespace decent
