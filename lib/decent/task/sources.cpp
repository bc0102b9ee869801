#include "decent/task/sources.h"

#include <algorithm>
#include <span>

#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/formats.h"
#include "decent/data/subset.h"
#include "decent/task/criterion.h"

namespace decent {
namespace {

std::unique_ptr<Source> open_source(const SourceRecipe& recipe) {
  std::unique_ptr<Source> source = data_format(recipe.format).open(recipe.options);
  if (recipe.limit) source = limited(std::move(source), *recipe.limit);
  if (!recipe.holdout) return source;
  return held_out(std::move(source), {.fraction = recipe.holdout->fraction,
                                      .seed = static_cast<std::uint64_t>(recipe.holdout->seed),
                                      .evaluates = recipe.holdout->part == HoldoutPart::eval});
}

std::size_t find_field(const DataSet& data, const std::string& name, const std::string& wanted_by) {
  if (const auto index = data.source->field_index(name)) return *index;
  std::vector<std::string> names;
  for (const Field& field : data.source->fields()) names.push_back(field.name);
  const auto nearest = nearest_name(name, names);
  throw UserError(data.key + " has no field '" + name + "', which " + wanted_by +
                  " asks for; it has " + join(names) +
                  (nearest ? "; did you mean '" + *nearest + "'?" : ""));
}

}  // namespace

std::vector<std::int64_t> spread_samples(const Source& source, std::int64_t most) {
  const std::int64_t count = std::min(most, source.size());
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    // i * size / count without overflow
    samples.push_back(source.size() / count * i + source.size() % count * i / count);
  }
  return samples;
}

std::string content_of(const Source& source) {
  constexpr std::int64_t kMaxSamples = 64;
  const std::vector<std::int64_t> samples = spread_samples(source, kMaxSamples);
  Checksum checksum;
  for (std::size_t field = 0; field < source.fields().size(); ++field) {
    const std::size_t bytes = source.fields()[field].sample_bytes();
    std::string sample(bytes, '\0');
    for (const std::int64_t index : samples) {
      source.read(field, std::span(&index, 1), reinterpret_cast<std::byte*>(sample.data()));
      checksum.add(sample);
    }
  }
  return checksum.hex();
}

DataSet open_data_set(const std::string& key, const SourceRecipe& recipe,
                      const ModelRecipe& model) {
  DataSet data{.key = key, .source = nullptr, .fields = {}, .has_target = true, .content = {}};
  try {
    data.source = open_source(recipe);
    data.content = content_of(*data.source);
  } catch (const UserError& error) {
    throw UserError(key + ": " + error.what());
  }
  for (const ModelInput& input : model.inputs)
    data.fields.push_back(find_field(data, input.field, "model.inputs"));
  data.has_target = Criterion(model).needs_target();
  if (data.has_target) data.fields.push_back(find_field(data, model.target, "model.target"));
  return data;
}

}  // namespace decent
