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

// As its format opens it.
std::unique_ptr<Source> open_whole(const SourceRecipe& recipe, const DataRecipe& data,
                                   DataUse use) {
  const DataFormat format = data_format(recipe.format);
  if (use != DataUse::prediction || !format.open_without_target) return format.open(recipe.options);
  const bool alike = data.train.format == recipe.format;
  return format.open_without_target(recipe.options, alike ? &data.train.options : nullptr);
}

std::unique_ptr<Source> open_source(const SourceRecipe& recipe, const DataRecipe& data,
                                    DataUse use) {
  std::unique_ptr<Source> source = open_whole(recipe, data, use);
  if (recipe.limit) source = limited(std::move(source), *recipe.limit);
  if (!recipe.holdout) return source;
  return held_out(std::move(source), {.fraction = recipe.holdout->fraction,
                                      .seed = static_cast<std::uint64_t>(recipe.holdout->seed),
                                      .evaluates = recipe.holdout->part == HoldoutPart::eval});
}

const SourceRecipe& source_of(const std::string& key, const DataRecipe& data) {
  if (key == "data.train") return data.train;
  return key == "data.eval" ? data.eval.value() : data.predict.value();
}

void add_sample_transform(const Transform& row, const Options& options, DataUse use,
                          Transforms& transforms) {
  auto transform = row.make(options);
  if (use != DataUse::training && transform->random()) transform = transform->in_evaluation();
  if (transform) transforms.of_samples.push_back(std::move(transform));
}

bool is_of_input(const TransformRecipe& transform, const ModelRecipe& model) {
  const auto field = transform.options.get_if<std::string>("field");
  return !field || std::any_of(model.inputs.begin(), model.inputs.end(),
                               [&](const ModelInput& input) { return input.field == field; });
}

Transforms transforms_of(const Recipe& recipe, DataUse use) {
  Transforms transforms;
  std::string of_batches;  // the last one
  for (const TransformRecipe& each : recipe.data.transforms) {
    if (use == DataUse::prediction && !is_of_input(each, recipe.model)) continue;
    const Transform row = transform_row(each.name);
    if (row.make_for_batches) {
      auto transform = row.make_for_batches(each.options);
      of_batches = each.name;
      if (use == DataUse::training) transforms.of_batches.push_back(std::move(transform));
    } else if (of_batches.empty()) {
      add_sample_transform(row, each.options, use, transforms);
    } else {
      throw UserError("data.transforms: " + of_batches + " takes whole batches; put " + each.name +
                      " in front of it");
    }
  }
  return transforms;
}

std::shared_ptr<LeftOut> left_out_of(const DataRecipe& data, DataUse use) {
  if (data.on_error == OnError::fail) return nullptr;
  return std::make_shared<LeftOut>(use == DataUse::training ? LeftOut::Instead::next_sample
                                                            : LeftOut::Instead::nothing);
}

std::size_t find_field(const DataSet& data, const std::string& name, const std::string& wanted_by) {
  const std::vector<Field>& fields = data.samples->fields();
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.name == name) return names.size();
    names.push_back(field.name);
  }
  const auto nearest = nearest_name(name, names);
  throw UserError(data.key + " has no field '" + name + "', which " + wanted_by +
                  " asks for; it has " + join(names) +
                  (nearest ? "; did you mean '" + *nearest + "'?" : ""));
}

}  // namespace

Batch DataSet::read(std::span<const std::int64_t> indices, std::int64_t epoch,
                    HostMemory memory) const {
  try {
    return samples->read(fields, indices, epoch, memory);
  } catch (const UserError& error) {
    throw UserError(key + ": " + error.what());
  }
}

std::vector<std::int64_t> spread_samples(const Source& source, std::int64_t most) {
  const std::int64_t count = std::min(most, source.size());
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    // i * size / count without overflow
    samples.push_back(source.size() / count * i + source.size() % count * i / count);
  }
  return samples;
}

namespace {

// Nothing where the sample cannot be read and is left out.
std::string_view content_of(const Source& source, std::size_t field, std::int64_t index,
                            bool leaves_out, std::span<HostArray> sample) {
  try {
    source.read_one({&field, 1}, index, sample);
  } catch (const UserError&) {
    if (leaves_out) return {};
    throw;
  }
  const std::vector<std::byte>& bytes = sample[field].bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string content_of(const Source& source, bool leaves_out) {
  constexpr std::int64_t kMaxSamples = 64;
  const std::vector<std::int64_t> samples = spread_samples(source, kMaxSamples);
  Checksum checksum;
  std::vector<HostArray> sample(source.fields().size());
  for (std::size_t field = 0; field < source.fields().size(); ++field) {
    for (const std::int64_t index : samples) {
      checksum.add(content_of(source, field, index, leaves_out, sample));
    }
  }
  return checksum.hex();
}

Samples open_samples(const std::string& key, const Recipe& recipe, DataUse use,
                     std::shared_ptr<LeftOut> left_out) {
  return Samples(open_source(source_of(key, recipe.data), recipe.data, use),
                 transforms_of(recipe, use), static_cast<std::uint64_t>(recipe.seed),
                 std::move(left_out));
}

DataSet open_data_set(const std::string& key, const Recipe& recipe, DataUse use) {
  DataSet data{.key = key,
               .samples = nullptr,
               .left_out = left_out_of(recipe.data, use),
               .fields = {},
               .has_target = true,
               .content = {}};
  try {
    data.samples = std::make_shared<Samples>(
        open_source(source_of(key, recipe.data), recipe.data, use), transforms_of(recipe, use),
        static_cast<std::uint64_t>(recipe.seed), data.left_out);
    data.content = content_of(data.samples->source(), data.left_out != nullptr);
  } catch (const UserError& error) {
    throw UserError(key + ": " + error.what());
  }
  for (const ModelInput& input : recipe.model.inputs)
    data.fields.push_back(find_field(data, input.field, "model.inputs"));
  data.has_target = use != DataUse::prediction && Criterion(recipe.model).needs_target();
  if (data.has_target) data.fields.push_back(find_field(data, recipe.model.target, "model.target"));
  return data;
}

}  // namespace decent
