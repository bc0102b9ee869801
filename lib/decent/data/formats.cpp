#include "decent/data/formats.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/built_in.h"

namespace decent {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<DataFormat> formats = {builtin_format(), safetensors_format(), npz_format(),
                                     idx_format(),     tokens_format(),      text_format(),
                                     csv_format(),     pairs_format(),       images_format()};
};

Table& table() {
  static Table formats;
  return formats;
}

const DataFormat* find(const std::vector<DataFormat>& formats, std::string_view name) {
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const DataFormat& each) { return each.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace

OptionKey path_key(std::string meaning) {
  return {.name = "path", .type = OptionType::paths, .meaning = std::move(meaning)};
}

void register_data_format(DataFormat format) {
  if (format.name.empty()) throw UserError("a data format needs a name");
  if (!format.open) throw UserError("data format '" + format.name + "': the function is empty");
  const std::lock_guard lock(table().mutex);
  if (find(table().formats, format.name) != nullptr)
    throw UserError("there is a data format '" + format.name + "' already: choose another name");
  table().formats.push_back(std::move(format));
}

DataFormat data_format(std::string_view name) {
  const std::vector<DataFormat> formats = data_formats();
  if (const DataFormat* format = find(formats, name)) return *format;
  std::vector<std::string> names;
  for (const DataFormat& format : formats) names.push_back(format.name);
  throw UserError("unknown data format '" + std::string(name) + "'; valid: " + join(names));
}

std::vector<DataFormat> data_formats() {
  const std::lock_guard lock(table().mutex);
  return table().formats;
}

}  // namespace decent
