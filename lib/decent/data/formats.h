#pragma once
// The formats of data sources. Each is in a file that ends with its row of the table (built_in.h),
// and a program may register its own.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"
#include "decent/data/source.h"

namespace decent {

/// How to read data for evaluation or prediction, or the training data again after a resume: in the
/// same way as the training data was read.
struct Reading {
  bool needs_target = true;  // false for data.predict
  /// The names of the training data's classes; none if the data numbers them itself. nullopt:
  /// nothing is known about them.
  std::optional<std::vector<std::string>> classes = std::nullopt;
  std::string where = {};  // their source, for messages: "data.train", "'runs/x/data.json'"
  /// If the training data has this format: the values of its keys, and Source::learned. Else null.
  const Options* keys = nullptr;
  const Options* learned = nullptr;
  /// For data.predict if nothing was learned: the keys of data.train, if that has this format; its
  /// files may still exist. Else null.
  const Options* train = nullptr;
};

/// A row of the table.
struct DataFormat {
  std::string name;             // the value of `format` in data.train and data.eval
  std::vector<OptionKey> keys;  // that it takes
  /// Throws UserError for data that cannot be read.
  std::function<std::unique_ptr<Source>(const Options& options)> open;
  /// The same in the way of a reading. Empty: what this format reads depends on its keys alone.
  std::function<std::unique_ptr<Source>(const Options& options, const Reading& reading)> open_as =
      {};
};

/// The key `path`: files and wildcards.
OptionKey path_key(std::string meaning);
/// The key `fields` of formats with columns. Inline, because readers of images are linked without
/// the table of formats.
inline OptionKey fields_key() {
  return {.name = "fields",
          .type = OptionType::texts,
          .meaning =
              "Columns of numbers that become fields of their own, called as the column is: "
              "neither part of the input nor of the target, such as the weights of "
              "`data.sampling`. Only for this source.",
          .fallback = kNull,
          .scope = OptionScope::place};
}
/// Its value.
inline std::vector<std::string> named_fields(const Options& options) {
  return options.get_if<std::vector<std::string>>("fields").value_or(std::vector<std::string>{});
}

/// Makes a format available under its name, in this process. Throws UserError for an empty name, a
/// name that is taken, and a format that opens nothing. Any thread.
void register_data_format(DataFormat format);

/// The format of that name. Throws UserError for an unknown one, listing all. Any thread.
DataFormat data_format(std::string_view name);

/// All formats that data_format knows: first those of built_in.h, then those that were registered.
/// Any thread.
std::vector<DataFormat> data_formats();

}  // namespace decent
