#include "decent/data/formats.h"

#include <mutex>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/data/built_in.h"

namespace decent {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<DataFormat> formats = {
      builtin_format(), safetensors_format(), npz_format(),   idx_format(),    tokens_format(),
      text_format(),    csv_format(),         pairs_format(), images_format(), webdataset_format()};
};

Table& table() {
  static Table formats;
  return formats;
}

}  // namespace

OptionKey path_key(std::string meaning) {
  return {.name = "path", .type = OptionType::paths, .meaning = std::move(meaning)};
}

void register_data_format(DataFormat format) {
  if (format.name.empty()) throw UserError("a data format needs a name");
  if (!format.open) throw UserError("data format '" + format.name + "': the function is empty");
  const std::lock_guard lock(table().mutex);
  if (find_named(table().formats, format.name) != nullptr)
    throw UserError("there is a data format '" + format.name + "' already: choose another name");
  table().formats.push_back(std::move(format));
}

DataFormat data_format(std::string_view name) {
  const std::vector<DataFormat> formats = data_formats();
  if (const DataFormat* format = find_named(formats, name)) return *format;
  throw UserError("unknown data format '" + std::string(name) +
                  "'; valid: " + join(names_in(formats)));
}

std::vector<DataFormat> data_formats() {
  const std::lock_guard lock(table().mutex);
  return table().formats;
}

}  // namespace decent
