#include "decent/task/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "decent/core/error.h"
#include "decent/task/scalings.h"
#include "decent/task/sources.h"

namespace decent {
namespace {

constexpr std::int64_t kMostDecoded = 4096;

// Sums over the values at each place of a field's first dimension. The first value is subtracted
// from all, because sums of squares lose digits if data are far from zero.
class PlaceSums {
 public:
  /// Adds the values of one sample, of that shape.
  void add(std::span<const float> values, const std::vector<std::int64_t>& shape) {
    if (values.empty()) return;
    const std::size_t places = shape.empty() ? 1 : static_cast<std::size_t>(shape[0]);
    if (origin_.empty()) begin(values, places);
    if (origin_.size() != places) {
      throw UserError(
          "normalize: auto needs samples that have the same number of channels; they have " +
          std::to_string(origin_.size()) + " and " + std::to_string(places));
    }
    const std::size_t each = values.size() / places;
    for (std::size_t place = 0; place < places; ++place) {
      double sum = 0;
      double squares = 0;
      for (const float value : values.subspan(place * each, each)) {
        const double distance = static_cast<double>(value) - origin_[place];
        sum += distance;
        squares += distance * distance;
      }
      sums_[place] += sum;
      squares_[place] += squares;
    }
    count_ += static_cast<double>(each);
  }

  std::vector<double> means() const {
    std::vector<double> means;
    for (std::size_t i = 0; i < sums_.size(); ++i) means.push_back(origin_[i] + sums_[i] / count_);
    return means;
  }
  std::vector<double> deviations() const {
    std::vector<double> deviations;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double mean = sums_[i] / count_;
      const double deviation = std::sqrt(std::max(0.0, squares_[i] / count_ - mean * mean));
      deviations.push_back(deviation > 0 ? deviation : 1);
    }
    return deviations;
  }

 private:
  void begin(std::span<const float> values, std::size_t places) {
    for (std::size_t place = 0; place < places; ++place)
      origin_.push_back(values[place * (values.size() / places)]);
    sums_.resize(places);
    squares_.resize(places);
  }

  std::vector<double> origin_;
  std::vector<double> sums_;
  std::vector<double> squares_;
  double count_ = 0;  // of values at each place
};

// The samples that count: all of them, or kMostDecoded spread over the data.
class Counted {
 public:
  explicit Counted(const Source& source)
      : size_(source.size()), count_(source.decodes() ? std::min(kMostDecoded, size_) : size_) {}

  std::int64_t size() const { return count_; }
  // i * size / count without overflow
  std::int64_t operator[](std::int64_t i) const {
    return size_ / count_ * i + size_ % count_ * i / count_;
  }

 private:
  std::int64_t size_;
  std::int64_t count_;
};

PlaceSums sums_of(const Samples& samples, std::size_t field, bool leaves_out) {
  const std::size_t wanted[] = {field};
  const Counted counted(samples.source());
  PlaceSums sums;
  std::vector<HostArray> sample(samples.source().fields().size());
  for (std::int64_t i = 0; i < counted.size(); ++i) {
    try {
      samples.read_one(wanted, counted[i], /*epoch=*/0, sample);
    } catch (const UserError&) {
      if (leaves_out) continue;
      throw;
    }
    sums.add(sample[field].as<const float>(), sample[field].shape);
  }
  return sums;
}

// The field's place among the fields. Checks that its numbers can be normalized.
std::size_t field_to_normalize(const Samples& samples, const std::string& name) {
  const std::vector<Field>& fields = samples.fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  if (found == fields.end()) throw UserError("normalize: there is no field '" + name + "'");
  if (found->dtype != DType::float32) {
    throw UserError("normalize: field '" + name + "' is " + std::string(name_of(found->dtype)) +
                    "; expected float32");
  }
  return static_cast<std::size_t>(found - fields.begin());
}

bool is_auto(const TransformRecipe& transform) {
  return transform.name == "normalize" && !transform.options.is_null("statistics");
}

void set_numbers(Options& options, std::vector<double> mean, std::vector<double> std) {
  options.set("statistics", kNull);
  options.set("mean", std::move(mean));
  options.set("std", std::move(std));
}

void measure(Recipe& recipe, std::size_t place) {
  Options& options = recipe.data.transforms[place].options;
  Recipe before = recipe;
  before.data.transforms.resize(place);
  before.data.eval_transforms.reset();
  const Samples samples = open_samples("data.train", before, DataUse::evaluation);
  const std::size_t field = field_to_normalize(samples, options.get<std::string>("field"));
  const PlaceSums sums = sums_of(samples, field, recipe.data.on_error == OnError::skip);
  set_numbers(options, sums.means(), sums.deviations());
}

// Evaluation normalizes by the numbers of training.
void take_numbers_of_training(DataRecipe& data) {
  std::map<std::string, std::size_t> passed;  // normalizations of a field
  for (TransformRecipe& each : *data.eval_transforms) {
    if (each.name != "normalize") continue;
    const auto& field = each.options.get<std::string>("field");
    const std::size_t place = passed[field]++;
    if (!is_auto(each)) continue;
    const std::vector<Normalization> trained = normalizations_of(data.transforms, field);
    if (place >= trained.size()) {
      throw UserError(
          "data.eval_transforms: normalize: auto takes the numbers of data.transforms, which has " +
          std::string(place > 0 ? "no further" : "no") + " normalize of field '" + field + "'");
    }
    set_numbers(each.options, trained[place].mean, trained[place].std);
  }
}

// The options of `transform`, with the numbers of `measured` in place of `auto`.
Options with_numbers_of(const TransformRecipe& measured, const TransformRecipe& transform) {
  Options options = transform.options;
  if (!is_auto(transform) || measured.name != transform.name) return options;
  for (const char* key : {"mean", "std"}) {
    const OptionValue& numbers = measured.options.value(key);
    if (!std::holds_alternative<std::vector<double>>(numbers))
      throw UserError(std::string("what is kept of normalize: auto is damaged: ") + key +
                      " is no list of numbers");
    options.set(key, numbers);
  }
  options.set("statistics", kNull);
  return options;
}

}  // namespace

bool needs_statistics(const Recipe& recipe) {
  return std::any_of(recipe.data.transforms.begin(), recipe.data.transforms.end(), is_auto);
}

Recipe with_statistics_of(const std::vector<TransformRecipe>& theirs, Recipe recipe) {
  std::vector<TransformRecipe> own = recipe.data.transforms;
  if (own.size() != theirs.size()) return recipe;
  for (std::size_t i = 0; i < own.size(); ++i) own[i].options = with_numbers_of(theirs[i], own[i]);
  const bool alike = own == theirs && std::none_of(own.begin(), own.end(), is_auto);
  if (alike) recipe.data.transforms = std::move(own);
  return recipe;
}

Recipe with_statistics(Recipe recipe) {
  for (std::size_t place = 0; place < recipe.data.transforms.size(); ++place) {
    if (is_auto(recipe.data.transforms[place])) measure(recipe, place);
  }
  if (recipe.data.eval_transforms) take_numbers_of_training(recipe.data);
  return recipe;
}

}  // namespace decent
