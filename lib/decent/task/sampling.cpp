#include "decent/task/sampling.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"

namespace decent {
namespace {

const std::string kWeightsKey = "data.sampling.weights: ";

// Errors name the data set.
void read_numbers(const DataSet& data, std::size_t field, std::span<const std::int64_t> samples,
                  std::vector<std::byte>& bytes) {
  try {
    data.samples->source().read(field, samples, bytes.data());
  } catch (const UserError& error) {
    throw UserError(data.key + ": " + error.what());
  }
}

// The number that each sample has in a field, which `wanted` describes: "a weight".
std::vector<double> numbers_in(const DataSet& data, std::size_t number, const std::string& wanted) {
  constexpr std::int64_t kSamplesAtOnce = 1024;
  const Source& source = data.samples->source();
  const Field& field = source.fields()[number];
  if (!field.fixed() || field.sample_bytes() != size_of(field.dtype)) {
    throw UserError(kWeightsKey + "expected " + wanted + ", one number for each sample; field '" +
                    field.name + "' is " + std::string(name_of(field.dtype)) +
                    shape_text(field.shape));
  }
  std::vector<double> numbers(static_cast<std::size_t>(source.size()));
  std::vector<std::byte> bytes;
  for (std::int64_t first = 0; first < source.size(); first += kSamplesAtOnce) {
    const std::int64_t count = std::min(kSamplesAtOnce, source.size() - first);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
    std::iota(samples.begin(), samples.end(), first);
    bytes.resize(samples.size() * field.sample_bytes());
    read_numbers(data, number, samples, bytes);
    const at::Tensor read =
        at::from_blob(bytes.data(), {count}, scalar_type(field.dtype)).to(at::kDouble);
    std::memcpy(numbers.data() + first, read.const_data_ptr(), read.nbytes());
  }
  return numbers;
}

// Refuses the first number that is not `good`.
void check_numbers(const DataSet& data, const std::string& field,
                   const std::vector<double>& numbers, const std::string& wanted,
                   const std::function<bool(double)>& good) {
  const auto bad = std::find_if_not(numbers.begin(), numbers.end(), good);
  if (bad == numbers.end()) return;
  throw UserError(kWeightsKey + data.text_of(bad - numbers.begin()) + ", counted from 0: field '" +
                  field + "' is " + number_text(printable(*bad)) + "; expected " + wanted);
}

std::vector<double> weights_in(const DataSet& data, std::size_t field) {
  std::vector<double> weights = numbers_in(data, field, "a weight");
  check_numbers(data, data.samples->source().fields()[field].name, weights,
                "a weight, finite and >= 0",
                [](double weight) { return std::isfinite(weight) && weight >= 0; });
  return weights;
}

// Of samples whose classes these are: all classes together weigh the same. A sample without a class
// weighs nothing.
std::vector<double> balanced(std::vector<double> classes, double without_class) {
  std::map<double, double> counts;
  for (const double each : classes) ++counts[each];
  for (double& each : classes) each = each == without_class ? 0 : 1 / counts[each];
  return classes;
}

std::vector<double> class_weights(const DataSet& data, std::size_t field, double without_class) {
  std::vector<double> classes = numbers_in(data, field, "a class for class_balanced");
  check_numbers(data, data.samples->source().fields()[field].name, classes,
                "a class for class_balanced, which is a whole number",
                [](double each) { return std::isfinite(each) && each == std::floor(each); });
  return balanced(std::move(classes), without_class);
}

std::vector<double> weights_of(const Recipe& recipe, const DataSet& train) {
  const std::size_t field = weights_field(train, recipe);
  return recipe.data.sampling->weights == kClassBalanced
             ? class_weights(train, field, static_cast<double>(recipe.model.ignore_index))
             : weights_in(train, field);
}

// Makes workers compare these numbers when they compare their training data.
template <class Number>
void add_to_content(const std::vector<Number>& numbers, DataSet& train) {
  train.content +=
      checksum_of({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)});
}

void check_lengths_differ(const DataSet& train) {
  const std::vector<Field>& fields = train.samples->source().fields();
  if (std::ranges::any_of(fields, &Field::padded)) return;
  std::vector<std::string> texts;
  for (const Field& field : fields)
    texts.push_back(field.name + " " + std::string(name_of(field.dtype)) + shape_text(field.shape));
  throw UserError("data.batch_tokens: the samples of data.train are all of one size (" +
                  join(texts) +
                  "), for which data.batch_size says how large a batch is; texts of "
                  "format pairs keep their lengths with `pad: batch`");
}

std::vector<std::int32_t> lengths_of(const DataSet& train, std::int64_t most) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(train.size()));
  for (std::int64_t sample = 0; sample < train.size(); ++sample) {
    const std::int64_t length = train.samples->source().length_of(sample);
    if (length > most) {
      throw UserError(
          "data.batch_tokens: expected at least the tokens of the longest sample, got " +
          std::to_string(most) + "; " + train.text_of(sample) + ", counted from 0, has " +
          std::to_string(length));
    }
    lengths[static_cast<std::size_t>(sample)] = static_cast<std::int32_t>(length);
  }
  return lengths;
}

}  // namespace

std::shared_ptr<const TokenBatches> token_batches(const Recipe& recipe, DataSet& train) {
  const DataRecipe& data = recipe.data;
  if (!data.batch_tokens) return nullptr;
  check_lengths_differ(train);
  const std::vector<std::int32_t> lengths = lengths_of(train, *data.batch_tokens);
  add_to_content(lengths, train);
  const auto seed =
      data.shuffle ? std::optional(static_cast<std::uint64_t>(recipe.seed)) : std::nullopt;
  return std::make_shared<TokenBatches>(lengths, *data.batch_tokens, seed);
}

std::shared_ptr<const WeightedOrder> weighted_order(const Recipe& recipe, DataSet& train) {
  if (!recipe.data.sampling) return nullptr;
  const std::vector<double> weights = weights_of(recipe, train);
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; })) {
    throw UserError(kWeightsKey + "all " + counted(train.size(), "sample") +
                    " have weight 0, so that none can be drawn");
  }
  add_to_content(weights, train);
  return std::make_shared<WeightedOrder>(weights, recipe.data.sampling->replacement,
                                         static_cast<std::uint64_t>(recipe.seed));
}

}  // namespace decent
