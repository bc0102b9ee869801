#include "decent/task/learned_in.h"

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/core/file.h"
#include "decent/data/formats.h"
#include "decent/report/data_files.h"

namespace decent {

LearnedData learned_of(const Source& source, const std::string& format, const Options& keys) {
  LearnedData data{.format = format,
                   .learned = source.learned(),
                   .classes = source.classes(),
                   .where = "data.train"};
  for (const OptionKey& key : data_format(format).keys)
    if (!key.is_place()) data.keys.set(key.name, keys.value(key.name));
  return data;
}

LearnedData learned_in(const RunFolder& run) {
  std::error_code failed;
  if (std::filesystem::exists(run.data(), failed))
    return parse_learned(read_text(run.data()), run.data().string());
  return {.classes = read_classes(run.classes()), .where = "'" + run.classes().string() + "'"};
}

std::optional<LearnedData> learned_in_checkpoint(const std::filesystem::path& folder) {
  const std::optional<std::string> text = data_in_checkpoint(folder);
  if (!text) return std::nullopt;
  return parse_learned(*text, (folder / kDataName).string());
}

}  // namespace decent
