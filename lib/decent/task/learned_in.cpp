#include "decent/task/learned_in.h"

#include <algorithm>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/data/formats.h"
#include "decent/model/formats.h"
#include "decent/runfolder/data_files.h"

namespace decent {
namespace {

std::optional<LearnedData> learned_in_checkpoints(const CheckpointFolder& checkpoints) {
  for (const std::int64_t step : checkpoints.steps()) {
    try {
      if (auto learned = learned_in_checkpoint(checkpoints.path_of(step))) return learned;
    } catch (const CheckpointDamaged&) {
      continue;  // an older checkpoint may be undamaged
    }
  }
  return std::nullopt;
}

}  // namespace

LearnedData learned_of(const Source& source, const DataRecipe& data) {
  LearnedData learned{.format = data.train.format,
                      .learned = source.learned(),
                      .transforms = data.transforms,
                      .eval_transforms = data.eval_transforms,
                      .classes = source.classes(),
                      .where = "data.train"};
  for (const OptionKey& key : data_format(data.train.format).keys)
    if (!key.is_place()) learned.keys.set(key.name, data.train.options.value(key.name));
  return learned;
}

LearnedData learned_in(const RunFolder& run) {
  std::error_code failed;
  if (std::filesystem::exists(run.data(), failed))
    return parse_learned(read_text(run.data()), run.data().string());
  if (auto learned = learned_in_checkpoints(CheckpointFolder(run.checkpoints()))) return *learned;
  return {.classes = read_classes(run.classes()), .where = "'" + run.classes().string() + "'"};
}

std::optional<LearnedData> learned_in_checkpoint(const std::filesystem::path& folder) {
  const std::optional<std::string> text = data_in_checkpoint(folder);
  if (!text) return std::nullopt;
  return parse_learned(*text, (folder / kDataName).string());
}

std::optional<LearnedData> learned_in_model(const ModelRecipe& model) {
  std::vector<std::filesystem::path> files = {model.path};
  if (model.weights) files.insert(files.begin(), *model.weights);
  for (const std::filesystem::path& file : files) {
    const std::string text = data_in_file(file);
    if (!text.empty()) return parse_learned(text, file.string());
  }
  return std::nullopt;
}

bool normalizes_by_itself(const std::filesystem::path& model) {
  const std::string text = holds_scaling(model) ? data_in_file(model) : "";
  return !text.empty() && parse_learned(text, model.string()).normalizes;
}

std::vector<std::string> names_of_classes(const Task& task, const DataSet& data,
                                          std::size_t count) {
  std::vector<std::string> names = task.learned.classes;
  // Needed for a checkpoint of an older version that is not in its run's folder.
  if (names.empty()) names = learned_in(RunFolder(task.recipe.output)).classes;
  names = written_names(names.empty() ? data.samples->source().classes() : names);
  if (names.empty()) return names;
  while (names.size() < count) names.push_back(std::to_string(names.size()));
  names.resize(count);
  return names;
}

void check_classes(const DataSet& eval, const SourceRecipe& recipe, const LearnedData& learned) {
  const std::vector<std::string> own = written_names(eval.samples->source().classes());
  const std::vector<std::string> names = written_names(learned.classes);
  const auto [first, other] = std::mismatch(names.begin(), names.end(), own.begin(), own.end());
  if (names.empty() || other == own.end()) return;
  const auto& keys = recipe.options.all();
  const bool has_reference = std::any_of(keys.begin(), keys.end(),
                                         [](const auto& key) { return key.first == "reference"; });
  throw UserError("data.eval: class " + std::to_string(other - own.begin()) + " is " +
                  in_quotes(*other) + ", in " + learned.where + " " +
                  (first == names.end() ? "there is none" : "it is " + in_quotes(*first)) +
                  (has_reference ? "; `reference: <path of data.train>` takes the classes of that"
                                 : "; both must have the same classes"));
}

}  // namespace decent
