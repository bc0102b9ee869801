#include "decent/task/sources.h"

#include <algorithm>
#include <span>

#include "decent/checkpoint/checksum.h"
#include "decent/config/option_keys.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/formats.h"
#include "decent/data/subset.h"
#include "decent/task/criterion.h"
#include "decent/task/scalings.h"

namespace decent {
namespace {

// The source as its format opens it if nothing is known of the training data.
std::unique_ptr<Source> open_by_itself(const SourceRecipe& recipe, const DataRecipe& data,
                                       DataUse use) {
  const DataFormat format = data_format(recipe.format);
  if (use != DataUse::prediction || !format.open_as) return format.open(recipe.options);
  const bool alike = data.train.format == recipe.format;
  return format.open_as(recipe.options, {.needs_target = false,
                                         .classes = std::nullopt,
                                         .where = {},
                                         .keys = nullptr,
                                         .learned = nullptr,
                                         .train = alike ? &data.train.options : nullptr});
}

// A sample must mean the same in all data. Keys that an older version did not know are not
// compared.
void check_keys(const SourceRecipe& recipe, const DataFormat& format, const LearnedData& known) {
  const auto& given = known.keys.all();
  for (const OptionKey& key : format.keys) {
    if (key.scope != OptionScope::meaning || key.is_place()) continue;
    const auto trained = std::find_if(given.begin(), given.end(),
                                      [&](const auto& each) { return each.first == key.name; });
    const OptionValue& own = recipe.options.value(key.name);
    if (trained == given.end() || trained->second == own) continue;
    throw UserError(key.name + " is " + config::print_option(own) + ", in " + known.where +
                    " it is " + config::print_option(trained->second) +
                    "; leave it out: data of the format of data.train is read as that was");
  }
}

// Class numbers could be confused with class names that are numbers.
void check_numbered(const SourceRecipe& recipe, const LearnedData& known) {
  for (std::size_t number = 0; number < known.classes.size(); ++number) {
    if (!number_in_label(known.classes[number])) return;
  }
  for (std::size_t number = 0; number < known.classes.size(); ++number) {
    if (number_in_label(known.classes[number]) == static_cast<std::int64_t>(number)) continue;
    throw UserError("format " + recipe.format + " numbers its classes, and in " + known.where +
                    " class " + std::to_string(number) + " is called " +
                    in_quotes(known.classes[number]) +
                    ", so that it is not clear what a number means; data of the format of "
                    "data.train names its classes");
  }
}

std::unique_ptr<Source> open_whole(const SourceRecipe& recipe, const DataRecipe& data, DataUse use,
                                   const LearnedData* known) {
  const bool tells = known != nullptr && (known->is_whole() || !known->classes.empty());
  if (!tells || (use == DataUse::prediction && !known->is_whole()))
    return open_by_itself(recipe, data, use);
  const DataFormat format = data_format(recipe.format);
  const bool alike = known->format == recipe.format;
  if (alike) check_keys(recipe, format, *known);
  if (!format.open_as) {
    if (use == DataUse::evaluation) check_numbered(recipe, *known);
    return open_by_itself(recipe, data, use);
  }
  return format.open_as(recipe.options, {.needs_target = use != DataUse::prediction,
                                         .classes = known->classes,
                                         .where = known->where,
                                         .keys = alike ? &known->keys : nullptr,
                                         .learned = alike ? &known->learned : nullptr,
                                         .train = nullptr});
}

std::unique_ptr<Source> open_source(const SourceRecipe& recipe, const DataRecipe& data, DataUse use,
                                    const LearnedData* known) {
  std::unique_ptr<Source> source = open_whole(recipe, data, use, known);
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
  const DataRecipe& data = recipe.data;
  Transforms transforms;
  std::string of_batches;  // the last such transform
  for (const TransformRecipe& each :
       use == DataUse::training ? data.transforms : data.transforms_of_evaluation()) {
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

// For all formats: every key that is a path is a file that is read.
std::string files_text(const SourceRecipe& source) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> files;
  const auto add = [&](const std::filesystem::path& file) {
    files.push_back("'" + file.string() + "'");
  };
  for (const auto& [name, value] : source.options.all()) {
    if (const auto* one = std::get_if<std::filesystem::path>(&value)) add(*one);
    if (const auto* several = std::get_if<Paths>(&value))
      std::for_each(several->begin(), several->end(), add);
  }
  return some_of(files, kShown);
}

std::vector<std::string> input_fields(const ModelRecipe& model) {
  std::vector<std::string> fields;
  for (const ModelInput& input : model.inputs) fields.push_back(input.field);
  return fields;
}

// A field that a key of the model names. The fields of the other key cannot be meant.
struct WantedField {
  std::string key;                      // "model.target"
  std::string name;                     // of the field
  std::vector<std::string> of_another;  // fields
  std::string whose;                    // of those fields: "an input"
};

WantedField wanted_input(const ModelInput& input, const ModelRecipe& model) {
  return {"model.inputs", input.field, {model.target}, "the target"};
}

WantedField wanted_target(const ModelRecipe& model) {
  return {"model.target", model.target, input_fields(model), "an input"};
}

WantedField wanted_weights(const std::string& name, const ModelRecipe& model) {
  std::vector<std::string> taken = input_fields(model);
  taken.push_back(model.target);
  return {"data.sampling.weights", name, std::move(taken), "an input or the target"};
}

// Advice on a missing field, given the fields of the data.
std::string advice_on_field(const WantedField& wanted, const std::vector<std::string>& names) {
  std::vector<std::string> others;
  for (const std::string& name : names) {
    const auto& taken = wanted.of_another;
    if (std::find(taken.begin(), taken.end(), name) == taken.end()) others.push_back(name);
  }
  if (const auto nearest = nearest_name(wanted.name, others))
    return "; did you mean '" + *nearest + "'?";
  if (others.empty()) {
    return (names.size() == 1 ? ", which is " : ", each of which is ") + wanted.whose +
           (wanted.key == "model.target" ? ": the data has no target" : "");
  }
  if (others.size() > 1) return "; " + wanted.key + " names what it takes";
  const bool is_list = wanted.key == "model.inputs";
  return "; `" + wanted.key + ": " + (is_list ? "[" + others.front() + "]" : others.front()) +
         "` takes it";
}

std::size_t find_field(const DataSet& data, const WantedField& wanted) {
  constexpr std::size_t kShownNames = 20;
  std::vector<std::string> names;
  for (const Field& field : data.samples->fields()) {
    if (field.name == wanted.name) return names.size();
    names.push_back(field.name);
  }
  throw UserError(data.key + " has no field '" + wanted.name + "', which " + wanted.key +
                  " asks for; it has " + some_of(names, kShownNames) +
                  advice_on_field(wanted, names));
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

// A source of one file does not name it with each sample, so `files` is passed.
std::string DataSet::text_of(std::int64_t sample) const {
  return sample_text(samples->source(), sample, files);
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

// Empty if the sample cannot be read and is left out.
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

void check_eval_transforms(const Recipe& recipe) {
  const DataRecipe& data = recipe.data;
  if (!data.eval_transforms) return;
  for (const TransformRecipe& each : *data.eval_transforms) {
    const Transform row = transform_row(each.name);
    if (row.make && !row.make(each.options)->random()) continue;
    throw UserError("data.eval_transforms: " + each.name +
                    " is random, which evaluation must not be; leave it out, or write resize or "
                    "center_crop in its place");
  }
  const std::string& target = recipe.model.target;
  if (normalizations_of(*data.eval_transforms, target) ==
      normalizations_of(data.transforms, target))
    return;
  throw UserError("data.eval_transforms: it does not normalize the target '" + target +
                  "' as data.transforms does, so that losses would have two units; give both "
                  "lists the same normalize of it");
}

Samples open_samples(const std::string& key, const Recipe& recipe, DataUse use,
                     std::shared_ptr<LeftOut> left_out, const LearnedData* known) {
  return Samples(open_source(source_of(key, recipe.data), recipe.data, use, known),
                 transforms_of(recipe, use), static_cast<std::uint64_t>(recipe.seed),
                 std::move(left_out));
}

DataSet open_data_set(const std::string& key, const Recipe& recipe, DataUse use,
                      const LearnedData* known) {
  DataSet data{.key = key,
               .samples = nullptr,
               .left_out = left_out_of(recipe.data, use),
               .fields = {},
               .has_target = true,
               .content = {},
               .files = files_text(source_of(key, recipe.data))};
  try {
    data.samples = std::make_shared<Samples>(open_samples(key, recipe, use, data.left_out, known));
    data.content = content_of(data.samples->source(), data.left_out != nullptr);
  } catch (const UserError& error) {
    throw UserError(key + ": " + error.what());
  }
  for (const ModelInput& input : recipe.model.inputs)
    data.fields.push_back(find_field(data, wanted_input(input, recipe.model)));
  data.has_target = use != DataUse::prediction && Criterion(recipe.model).needs_target();
  if (data.has_target) data.fields.push_back(find_field(data, wanted_target(recipe.model)));
  return data;
}

std::size_t weights_field(const DataSet& data, const Recipe& recipe) {
  const std::string& name = recipe.data.sampling.value().weights;
  if (name == kClassBalanced) return find_field(data, wanted_target(recipe.model));
  const std::vector<std::string> inputs = input_fields(recipe.model);
  if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) {
    throw UserError("data.sampling.weights: field '" + name +
                    "' is an input of the model (model.inputs); expected a field of weights alone");
  }
  return find_field(data, wanted_weights(name, recipe.model));
}

}  // namespace decent
