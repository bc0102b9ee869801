#include "decent/data/formats.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/digits.h"
#include "decent/data/npz_source.h"
#include "decent/data/safetensors_source.h"
#include "decent/data/shards.h"

namespace decent {
namespace {

std::unique_ptr<Source> open_builtin(const SourceOptions& options) {
  if (options.name != "digits")
    throw UserError("unknown builtin data set '" + options.name + "'; valid: digits");
  if (options.split != "train" && options.split != "test")
    throw UserError("digits have no part '" + options.split + "'; valid: train, test");
  return open_digits(options.split == "train");
}

std::unique_ptr<Source> open_safetensors(const SourceOptions& options) {
  return open_shards(expand_globs(options.paths), open_safetensors_source);
}

std::unique_ptr<Source> open_npz(const SourceOptions& options) {
  return open_shards(expand_globs(options.paths), open_npz_source);
}

struct Table {
  std::mutex mutex;
  std::vector<DataFormat> formats = {
      {.name = "builtin", .keys = {"name", "split"}, .open = open_builtin},
      {.name = "safetensors", .keys = {"path"}, .open = open_safetensors},
      {.name = "npz", .keys = {"path"}, .open = open_npz},
  };
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
