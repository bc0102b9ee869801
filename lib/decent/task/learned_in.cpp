#include "decent/task/learned_in.h"

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
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

}  // namespace decent
